"""Renders the turns of one sample for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

from harness.analysis.samples import list_best, result_of
from harness.report.terminal.sources import render_difference
from harness.report.terminal.tables import format_speedup, make_table, render_heading, style_outcome, style_text
from harness.report.values import format_range
from harness.store.columns import ResultRow
from harness.store.completions import Spent, TurnOrigin

if TYPE_CHECKING:
    from rich.console import RenderableType

LONGEST_FEEDBACK = 4_000  # characters
DEEPEST = 8  # levels of the tree that are indented


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTurns:
    """`origins` and `spent` are by turn. The parent's source and the feedback are those of the shown turn."""

    rows: Sequence[ResultRow] = ()
    origins: Mapping[int, TurnOrigin] = field(default_factory=dict)
    spent: Mapping[int, Spent] = field(default_factory=dict)
    before: str | None = None
    fed_back: str | None = None


NO_TURNS = SampleTurns()


def render_turns(turns: SampleTurns, shown: int, source: str | None) -> Iterator[RenderableType]:
    """Yield nothing for a sample of one turn."""
    if len(turns.rows) > 1:
        yield render_heading("Turns")
        yield _render_tree(turns, shown)
    if turns.fed_back is not None:
        cut = len(turns.fed_back) > LONGEST_FEEDBACK
        yield render_heading("Fed back")
        yield style_text(turns.fed_back[:LONGEST_FEEDBACK].rstrip() + ("\n... (cut)" if cut else ""))
    parent = turns.origins.get(shown, TurnOrigin()).parent
    if turns.before is not None and source and parent is not None:
        yield render_heading(f"Changed since turn {parent}")
        yield render_difference(turns.before, source, turn=parent)


def _render_tree(turns: SampleTurns, shown: int) -> RenderableType:
    """Indent a turn below its parent. `best` and `tokens` are those up to the turn."""
    rows = turns.rows
    bests = list_best([result_of(row) for row in rows])
    tokens = list(accumulate(_count_tokens(turns.spent.get(row.turn)) for row in rows))
    table = make_table("turn", "outcome", ">speedup", ">interval", ">over", ">best", ">tokens", ">id")
    lines = zip([_trace(turns.origins, row.turn) for row in rows], rows, bests, tokens, strict=True)
    for path, row, best, spent in sorted(lines, key=itemgetter(0)):
        table.add_row(
            _name_turn(path, turns.origins.get(row.turn)), style_outcome(row.outcome), _format_speedup(row),
            format_range(row.speedup_low, row.speedup_high) or "-", _format_comparison(row),
            "-" if best is None else _format_speedup(rows[best]),
            f"{spent:,}" if spent else "-", f"{row.id}{' <' if row.turn == shown else ''}",
        )  # fmt: skip
    return table


def _trace(origins: Mapping[int, TurnOrigin], turn: int) -> tuple[int, ...]:
    path = [turn]
    while (parent := origins.get(path[0], TurnOrigin()).parent) is not None and parent < path[0]:
        path.insert(0, parent)
    return tuple(path)


def _name_turn(path: Sequence[int], origin: TurnOrigin | None) -> str:
    depth = min(len(path) - 1, DEEPEST)
    partner = f" and {origin.partner}" if origin is not None and origin.partner is not None else ""
    return f"{' ' * (depth - 1)}└{path[-1]}{partner}" if depth else str(path[-1])


def _count_tokens(spent: Spent | None) -> int:
    return 0 if spent is None else (spent.prompt_tokens or 0) + (spent.completion_tokens or 0)


def _format_speedup(row: ResultRow) -> str:
    return format_speedup(row.speedup, row.clock)


def _format_comparison(row: ResultRow) -> str:
    return "-" if row.over_rival is None else f"{row.rival_turn}: {format_speedup(row.over_rival)}"
