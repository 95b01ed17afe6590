"""Renders a candidate's source in a terminal, and its changes since an earlier turn."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING

from harness.report.terminal.tables import style_text
from harness.report.values import make_printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


EXCERPT_LINES = 60
DIFF_LINES = 120
LONGEST_LINE = 400  # characters, in an excerpt


def render_source(source: str, *, marked: Collection[int] = ()) -> RenderableType:
    from rich.syntax import Syntax

    return Syntax(
        make_printable(source),
        "python",
        line_numbers=True,
        word_wrap=True,
        background_color="default",
        highlight_lines=set(marked),
    )


def render_excerpt(source: str, *, marked: Collection[int] = ()) -> RenderableType:
    """Show at most `EXCERPT_LINES`, with a note about the rest."""
    from rich.console import Group

    lines = source.splitlines()
    shown = "\n".join(line[:LONGEST_LINE] for line in lines[:EXCERPT_LINES])
    rest = len(lines) - EXCERPT_LINES
    if rest <= 0 and all(len(line) <= LONGEST_LINE for line in lines):
        return render_source(shown, marked=marked)
    more = f"({rest:,} more lines; --source shows all)" if rest > 0 else "(long lines are cut; --source shows all)"
    return Group(render_source(shown, marked=marked), style_text(more, "dim"))


def render_difference(before: str, after: str, *, turn: int) -> RenderableType:
    """Show a unified diff of at most `DIFF_LINES`."""
    from rich.syntax import Syntax

    lines = unified_diff(before.splitlines(), after.splitlines(), f"turn {turn}", "this turn", lineterm="", n=2)
    shown = list(islice(lines, DIFF_LINES + 1))
    if not shown:
        return style_text(f"no changes since turn {turn}")
    text = "\n".join(line[:LONGEST_LINE] for line in shown[:DIFF_LINES])
    if len(shown) > DIFF_LINES:
        text += "\n ..."
    return Syntax(make_printable(text), "diff", word_wrap=True, background_color="default")


_GUTTER = re.compile(r"\s*\d* \| ?")  # of g++; nvcc has none
_CARET = re.compile(r"[\s\d|]*[~^][\s~^|]*")
_FRAME = re.compile(r"  File \"([^\"\n]*)\"")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python3[^/]*/|/harness/(?:worker|protocol)/|<frozen ")
_INDENTED = re.compile(r"    ")


@dataclass(frozen=True, slots=True)
class CompilerText:
    """Wraps text, but truncates a long quoted line and the carets below it alike."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in fit_carets(self.text.split("\n"), options.max_width):
            yield style_text(line, self.style)


def fit_carets(lines: list[str], width: int) -> list[str]:
    fitted = list(lines)
    for at in range(1, len(lines)):
        if "^" in lines[at] and _CARET.fullmatch(lines[at]) and max(map(len, lines[at - 1 : at + 1])) > width:
            fitted[at - 1 : at + 1] = _cut_alike(lines[at - 1], lines[at], width)
    return fitted


def _cut_alike(quoted: str, carets: str, width: int) -> tuple[str, str]:
    match = _GUTTER.match(quoted)
    gutter = match.end() if match else 0
    room = width - gutter
    begin = max(min(carets.index("^") - room // 2, len(quoted) - room), gutter)
    return tuple(line[:gutter] + line[begin : begin + room] for line in (quoted, carets))  # type: ignore[return-value]


def drop_installed_frames(traceback: str) -> str:
    """Replace frames of installed packages by a note of their number. Other text stays."""
    kept, dropped, is_dropping = list[str](), 0, False
    for line in traceback.split("\n"):
        frame = _FRAME.match(line)
        if frame is not None:
            is_dropping = bool(_INSTALLED.search(frame[1]))
            dropped += is_dropping
        elif not _INDENTED.match(line):
            is_dropping = False
        if not is_dropping:
            kept += [*_note_frames(dropped), line]
            dropped = 0
    return "\n".join([*kept, *_note_frames(dropped)])


def _note_frames(count: int) -> Iterator[str]:
    if count:
        yield f"  ({count} frame{'s' if count > 1 else ''} of installed packages)"
