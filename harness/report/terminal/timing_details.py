"""Renders the timing of one evaluation: worker-reported and evaluator-measured times."""

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.domain import Block, Conditions, Timing
from harness.report.terminal.tables import format_speedup, format_time_us, make_table, style_text
from harness.report.verdict_text import (
    CLOCKS,
    WHOLE_CALLS,
    explain_call_time,
    explain_resolution,
    explain_timing_verdict,
    format_measured,
)

_WHY_COUNTED = (
    "The counted times rank: the reported ones, and what the evaluator's clock found beyond them; the ratio is the "
    "median over pairs. By the evaluator's clock alone both sides contain the exchange, so that ratio is closer to 1."
)
_REPORTED, _MEASURED = "reported by the worker", "measured by the evaluator"


def render_timing(timing: Timing, *, all_blocks: bool) -> Iterator[RenderableType]:
    yield style_text(f"{format_measured(timing)} against {timing.baseline}: {explain_timing_verdict(timing)}.")
    yield style_text(" ".join(filter(None, [CLOCKS[timing.clock], explain_resolution(timing)])))
    if whole_calls := explain_call_time(timing):
        yield style_text(whole_calls)
    yield _render_clocks(timing)
    if not timing.blocks:
        return
    if timing.clock in WHOLE_CALLS:
        yield style_text(_WHY_COUNTED, "dim")
    yield style_text(f"\n{len(timing.blocks)} blocks of {_count_calls(timing.blocks)} each; --blocks lists them", "dim")
    yield _render_quartiles(timing)
    if all_blocks:
        yield style_text("")
        yield _render_blocks(timing)


def list_conditions(timing: Timing) -> list[tuple[str, str]]:
    again = "1" if timing.attempts == 1 else f"{timing.attempts}: a disturbed one is repeated"
    if timing.conditions is None:
        return [("measurements", again), ("conditions", "not recorded")]
    return [*_list_seen(timing.conditions), ("measurements", again)]


def _list_seen(seen: Conditions) -> Iterator[tuple[str, str]]:
    yield "disturbed", f"YES: {seen.disturbed}" if seen.disturbed else "no"
    if seen.foreign_load is not None:
        yield "load", f"{seen.foreign_load:.2f} cores taken by other processes"
    if seen.clock_low_mhz is not None and seen.clock_high_mhz is not None:
        yield "clock", f"{seen.clock_low_mhz:,.0f} to {seen.clock_high_mhz:,.0f} MHz"
    if seen.temperature_c is not None:
        yield "temperature", f"{seen.temperature_c:.0f} C"
    yield "throttling", ", ".join(seen.throttle_reasons) or "none seen"


def _render_clocks(timing: Timing) -> Table:
    """Medians per call; the evaluator's times include the message exchange."""
    table = make_table("median per call", f">{timing.baseline}", ">candidate", ">ratio")
    for name, baseline_us, candidate_us in _list_clocks(timing.blocks if timing.clock in WHOLE_CALLS else ()):
        is_whole = name in (_REPORTED, _MEASURED) and candidate_us > 0
        ratio = format_speedup(baseline_us / candidate_us) if is_whole else ""
        table.add_row(name, *map(_time_cell, (baseline_us, candidate_us)), style_text(ratio))
    times = map(_time_cell, (timing.baseline_us, timing.candidate_us))
    table.add_row("counted", *times, style_text(format_speedup(timing.speedup, timing.clock), "bold"))
    return table


def _list_clocks(blocks: Sequence[Block]) -> Iterator[tuple[str, float, float]]:
    """Yield (name, baseline, candidate) medians in microseconds."""
    if not blocks:
        return
    yield _REPORTED, _median(blocks, "baseline_reported_us"), _median(blocks, "candidate_reported_us")
    yield _MEASURED, _median(blocks, "baseline_evaluator_us"), _median(blocks, "candidate_evaluator_us")
    baseline_us = median(block.baseline_evaluator_us - block.baseline_reported_us for block in blocks)
    candidate_us = median(block.candidate_evaluator_us - block.candidate_reported_us for block in blocks)
    yield "  of it the exchange", baseline_us, candidate_us
    if any(block.candidate_copy_us is not None for block in blocks):
        yield "copying the outputs", _median(blocks, "baseline_copy_us"), _median(blocks, "candidate_copy_us")


def _render_quartiles(timing: Timing) -> Table:
    table = make_table("blocks", ">least", ">1/4", ">median", ">3/4", ">most")
    for name, side in ((timing.baseline, "baseline"), ("candidate", "candidate")):
        times_us = [getattr(block, f"{side}_reported_us") for block in timing.blocks]
        table.add_row(style_text(name), *map(_time_cell, summarise_samples(times_us)))
    ratios = summarise_samples(_list_ratios(timing.blocks))
    table.add_row("ratio", *(style_text(format_speedup(ratio)) for ratio in ratios))
    return table


def summarise_samples(values: Sequence[float]) -> tuple[float, ...]:
    """Return minimum, quartiles and maximum; () without values."""
    if not values:
        return ()
    quarters = quantiles(values, n=4, method="inclusive") if len(values) > 1 else list(values) * 3
    return min(values), *quarters, max(values)


def _render_blocks(timing: Timing) -> Table:
    clocks = ("reported", "evaluator", "copy") if timing.clock in WHOLE_CALLS else ("time",)
    heads = [f">{clock}\n{side}" for clock in clocks for side in (timing.baseline, "candidate")]
    table = make_table(">\nblock", *heads, ">\nratio")
    for number, block in enumerate(timing.blocks, start=1):
        times_us = (
            block.baseline_reported_us, block.candidate_reported_us,
            block.baseline_evaluator_us, block.candidate_evaluator_us,
            block.baseline_copy_us, block.candidate_copy_us,
        )  # fmt: skip
        ratio = "".join(map(format_speedup, _list_ratios([block])))
        table.add_row(str(number), *map(_time_cell, times_us[: len(heads)]), style_text(ratio or "-"))
    return table


def _count_calls(blocks: Sequence[Block]) -> str:
    calls = sorted({block.calls for block in blocks})
    if calls == [1]:
        return "one call"
    return f"{calls[0]} calls" if len(calls) == 1 else f"{calls[0]} to {calls[-1]} calls"


def _list_ratios(blocks: Sequence[Block]) -> list[float]:
    return [
        block.baseline_reported_us / block.candidate_reported_us for block in blocks if block.candidate_reported_us > 0
    ]


def _median(blocks: Sequence[Block], name: str) -> float:
    values = [float(value) for block in blocks if (value := getattr(block, name)) is not None]
    return median(values) if values else 0.0


def _time_cell(time_us: float | None) -> Text:
    return style_text("-" if time_us is None else format_time_us(time_us))
