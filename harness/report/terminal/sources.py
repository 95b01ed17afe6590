"""Renders a candidate's source in a terminal, and its changes since an earlier turn."""

from __future__ import annotations

from collections.abc import Collection
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING

from harness.report.terminal.tables import style_text
from harness.report.values import make_printable

if TYPE_CHECKING:
    from rich.console import RenderableType

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
