"""The cases of one evaluation as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.domain import CaseResult, Evaluation
from harness.report.terminal.tables import format_speedup, format_time_us, make_table, style_outcome, style_text
from harness.report.verdict_text import explain_cases, format_interval

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


def render_cases(evaluation: Evaluation) -> Iterator[RenderableType]:
    is_timed = any(case.timing is not None for case in evaluation.cases)
    table = make_table()
    for name in ("case", "outcome", *(("speedup", "interval", "baseline, candidate") if is_timed else ())):
        is_number = name not in ("case", "outcome")
        table.add_column(style_text(name), justify="right" if is_number else "left", no_wrap=is_number)
    for case in evaluation.cases:
        table.add_row(_name_case(case), style_outcome(case.outcome.value), *(_list_times(case) if is_timed else ()))
    yield table
    for sentence in explain_cases(evaluation):
        yield style_text(sentence)


def _name_case(case: CaseResult) -> Text:
    name = style_text(case.name, "bold").append_text(style_text(", secret" if case.is_secret else ""))
    return name.append_text(style_text(f"\n{case.sizes}", "dim")) if case.sizes else name


def _list_times(case: CaseResult) -> tuple[Text, Text, Text]:
    timing = case.timing
    if timing is None:
        return style_text("-"), style_text("not timed"), style_text("-")
    interval = style_text(f"{format_interval(timing)}\n{timing.verdict}")
    times = f"{format_time_us(timing.baseline_us)}\n{format_time_us(timing.candidate_us)}"
    return style_text(format_speedup(timing.speedup, timing.clock)), interval, style_text(times)
