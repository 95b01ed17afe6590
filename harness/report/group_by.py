"""Counts evaluations by column values: `harness results --group model,outcome`. Every turn and sample counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.analysis.metrics import combine_clocks, geometric_mean
from harness.domain import Outcome
from harness.report.terminal.tables import add_column, format_cell, make_table
from harness.report.values import format_rate

if TYPE_CHECKING:
    from rich.table import Table

SUMMARY_COLUMNS = ("evaluations", "correct", "correct_share", "timed", "speedup", "speedup_clock")
Groups = Mapping[tuple[Any, ...], Mapping[str, Any]]


def count_groups(values: Iterable[tuple[Any, ...]]) -> Groups:
    """Map combinations of values, in order of occurrence, to SUMMARY_COLUMNS. Tuples are (outcome, speedup or None,
    clock, *values).
    """
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for outcome, speedup, clock, *shared in values:
        groups.setdefault(tuple(shared), []).append((outcome, speedup, clock or "call"))
    return {shared: _summarise(members) for shared, members in groups.items()}


def _summarise(members: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    correct = sum(outcome == Outcome.CORRECT for outcome, _, _ in members)
    timed = [(speedup, clock) for _, speedup, clock in members if speedup is not None]
    speedup, clock = geometric_mean([one for one, _ in timed]), combine_clocks(clock for _, clock in timed)
    counts = (len(members), correct, correct / len(members), len(timed), speedup, clock)
    return dict(zip(SUMMARY_COLUMNS, counts, strict=True))


def render_groups(groups: Groups, columns: Sequence[str]) -> Table:
    table = make_table()
    for name in columns:
        add_column(table, name)
    for name in ("evaluations", "correct", "share", "timed", "speedup"):
        add_column(table, name, is_number=True, whole=True)
    for shared, counts in groups.items():
        cells = (format_cell(name, value) for name, value in zip(columns, shared, strict=True))
        numbers = [f"{counts[name]:,}" for name in ("evaluations", "correct", "timed")]
        numbers.insert(2, format_rate(counts["correct_share"]))
        table.add_row(*cells, *numbers, format_cell("speedup", counts["speedup"], counts["speedup_clock"]))
    return table
