"""The turns of one sample, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.terminal.sources import render_difference
from harness.report.terminal.tables import format_speedup, make_table, style_outcome, style_text
from harness.store.results import ResultRow

if TYPE_CHECKING:
    from rich.console import RenderableType

LONGEST_FEEDBACK = 4_000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTurns:
    """`rows`: the evaluated turns. Of the shown turn: its `parent`, that turn's source, and what was fed back on it."""

    rows: Sequence[ResultRow] = ()
    parent: int | None = None
    before: str | None = None
    fed_back: str | None = None


NO_TURNS = SampleTurns()


def render_turns(turns: SampleTurns, shown: int, source: str | None) -> Iterator[RenderableType]:
    """Nothing for a sample of one turn."""
    if len(turns.rows) > 1:
        table = make_table()
        for name in ("turn", "outcome", "speedup", "interval", "id"):
            table.add_column(name, justify="left" if name == "outcome" else "right")
        for row in turns.rows:
            here = " <" if row.turn == shown else ""
            table.add_row(
                str(row.turn), style_outcome(row.outcome), format_speedup(row.speedup), _format_interval(row),
                f"{row.id}{here}",
            )  # fmt: skip
        yield _heading("Turns")
        yield table
    if turns.fed_back is not None:
        cut = len(turns.fed_back) > LONGEST_FEEDBACK
        yield _heading("Fed back")
        yield style_text(turns.fed_back[:LONGEST_FEEDBACK].rstrip() + ("\n... (cut)" if cut else ""))
    if turns.before is not None and source:
        turn = shown - 1 if turns.parent is None else turns.parent
        yield _heading(f"Changed since turn {turn}")
        yield render_difference(turns.before, source, turn=turn)


def _format_interval(row: ResultRow) -> str:
    if row.speedup_low is None or row.speedup_high is None:
        return "-"
    return f"[{row.speedup_low:.2f}, {row.speedup_high:.2f}]"


def _heading(text: str) -> RenderableType:
    return style_text(f"\n{text}", "bold underline")
