"""Formats output of compilers and interpreters for a terminal: carets keep their column, and frames of installed
packages are omitted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.terminal.tables import style_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

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
