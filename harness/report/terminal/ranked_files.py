"""Renders the ranking of files with candidates of one problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.analysis.file_ranking import RankedFile
from harness.report.terminal.tables import describe_fastest, format_speedup, make_table, style_outcome, style_text
from harness.report.values import format_fixed
from harness.store.columns import make_row

if TYPE_CHECKING:
    from rich.table import Table

    from harness.domain import Evaluation

LONGEST_REASON = 200  # characters; `harness show` prints the rest


def render_ranked_files(ranked: Sequence[RankedFile]) -> Table:
    table = make_table()
    for name in ("#", "id"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("file", overflow="fold", min_width=8)
    table.add_column("outcome", no_wrap=True)
    table.add_column("speedup\n[low, high]", justify="right", no_wrap=True)
    table.add_column("note", overflow="fold")
    for place, one in enumerate(ranked, start=1):
        numbers = (str(place) if one.is_correct else "-", str(one.stored.id))
        outcome, speedup = style_outcome(one.evaluation.outcome), format_interval(one.evaluation).replace(" [", "\n[")
        table.add_row(*numbers, style_text(one.name), outcome, speedup, style_text(_note(one)))
    return table


def list_notes(ranked: Sequence[RankedFile]) -> list[str]:
    devices = sorted({one.device_kind for one in ranked if one.is_correct})
    return [f"Speedups on different devices ({', '.join(devices)}) are not comparable."] if len(devices) > 1 else []


def format_interval(evaluation: Evaluation) -> str:
    """Return a text such as `1.23x [1.20, 1.26]`, or `-` without a confirmed time."""
    timing = evaluation.timing
    if timing is None or evaluation.speedup is None:
        return "-"
    low, high = format_fixed(timing.speedup_low, 2), format_fixed(timing.speedup_high, 2)
    return f"{format_speedup(evaluation.speedup, timing.clock)} [{low}, {high}]"


def _note(one: RankedFile) -> str:
    if not one.is_correct:
        return one.evaluation.message.partition("\n")[0][:LONGEST_REASON]
    return "; ".join(filter(None, (_compare(one), describe_fastest(make_row(one.evaluation)))))


def _compare(one: RankedFile) -> str:
    timing, pairs = one.evaluation.timing, one.pairs
    if one.timing is None:
        return "not timed" if timing is None else f"its time is {timing.verdict}"
    if pairs is None or pairs.speedup is None or pairs.speedup_low is None or pairs.speedup_high is None:
        return f"overlaps with {one.close_to}" if one.close_to else ""
    low, high = format_fixed(pairs.speedup_low, 2), format_fixed(pairs.speedup_high, 2)
    verdict = "faster than" if pairs.speedup_low > 1 else "slower than" if pairs.speedup_high < 1 else "tie with"
    return f"{verdict} {one.close_to}: {format_speedup(pairs.speedup)} in pairs [{low}, {high}]"
