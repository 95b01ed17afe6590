"""Counts evaluations by column values: `harness results --group model,outcome`. Every turn and sample counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.analysis.metrics import combine_clocks, geometric_mean
from harness.domain import Outcome
from harness.report.terminal.tables import add_column, format_cell, make_table
from harness.report.values import format_rate

if TYPE_CHECKING:
    from rich.table import Table

SUMMARY_COLUMNS = ("evaluations", "correct", "correct_share", "timed", "speedup", "speedup_clock")


@dataclass(slots=True, kw_only=True)
class GroupCount:
    """The rows that share `values`; `speedups` are the ranked ones."""

    values: tuple[Any, ...]
    evaluations: int = 0
    correct: int = 0
    speedups: list[float] = field(default_factory=list)
    clocks: set[str] = field(default_factory=set)

    @property
    def correct_share(self) -> float:
        return self.correct / self.evaluations

    @property
    def speedup(self) -> float | None:
        return geometric_mean(self.speedups)

    @property
    def clock(self) -> str | None:
        return combine_clocks(self.clocks)


def count_groups(values: Iterable[tuple[Any, ...]]) -> list[GroupCount]:
    """Return one entry per combination, in order of occurrence. Tuples are (outcome, speedup or None,
    clock, *values).
    """
    groups: dict[tuple[Any, ...], GroupCount] = {}
    for outcome, speedup, clock, *shared in values:
        key = tuple(shared)
        group = groups.get(key) or groups.setdefault(key, GroupCount(values=key))
        group.evaluations += 1
        group.correct += outcome == Outcome.CORRECT
        if speedup is not None:
            group.speedups.append(speedup)
            group.clocks.add(clock or "call")
    return list(groups.values())


def group_records(groups: Iterable[GroupCount], columns: Sequence[str]) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, group.values, strict=True))
        | {"evaluations": group.evaluations, "correct": group.correct, "correct_share": group.correct_share}
        | {"timed": len(group.speedups), "speedup": group.speedup, "speedup_clock": group.clock}
        for group in groups
    ]


def render_groups(groups: Iterable[GroupCount], columns: Sequence[str]) -> Table:
    table = make_table()
    for name in columns:
        add_column(table, name)
    for name in ("evaluations", "correct", "share", "timed", "speedup"):
        add_column(table, name, is_number=True, whole=True)
    for group in groups:
        cells = (format_cell(name, value) for name, value in zip(columns, group.values, strict=True))
        counts = f"{group.evaluations:,}", f"{group.correct:,}", format_rate(group.correct_share)
        speedup = format_cell("speedup", group.speedup, group.clock)
        table.add_row(*cells, *counts, f"{len(group.speedups):,}", speedup)
    return table
