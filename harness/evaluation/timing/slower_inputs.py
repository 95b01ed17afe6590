"""Finds kinds of inputs that slow the candidate but not the baseline: it may do less work if it recognises given
inputs. Its time with the slowest kind counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.domain import Block, Finding
from harness.evaluation.results import TimingResult
from harness.evaluation.timing.clocks import decide

GIVEN = "as_given"
LOSS, LOSS_US = 1.15, 20.0  # in time, of the candidate against the baseline; a difference within either is noise
FEWEST_PAIRS = 3  # of a kind, to charge for it


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowerInputs:
    """`factor` is the candidate's time with inputs of the kind `step` / that with given ones, beyond the baseline's."""

    step: str
    factor: float


def compare_inputs(step: str, found: Sequence[Block], given: Sequence[Block]) -> SlowerInputs | None:
    """Return None if the two differ by chance, or too few were measured. Medians are compared, since a program may be
    slow for only half of a kind's inputs.
    """
    if min(len(found), len(given)) < FEWEST_PAIRS:
        return None
    mine, usual = statistics.median(_list_ratios(found)), _list_ratios(given)
    if mine <= statistics.quantiles(usual, n=4)[2] or not _exceeds(mine, given):
        return None
    return SlowerInputs(step=step, factor=mine / statistics.median(usual))


def charge_slowest(result: TimingResult, slower: Sequence[SlowerInputs]) -> TimingResult:
    if not slower:
        return result
    worst, timing = max(slower, key=lambda one: one.factor), result.timing
    low, high = timing.speedup_low / worst.factor, timing.speedup_high / worst.factor
    charged = replace(
        timing,
        candidate_us=timing.candidate_us * worst.factor,
        speedup=timing.speedup / worst.factor,
        speedup_low=low,
        speedup_high=high,
        verdict=timing.verdict if timing.verdict == "unconfirmed" else decide(low, high),
    )
    message = (
        f"with inputs of the kind {worst.step} calls take {worst.factor:.2f} times as long as with given ones, "
        "those of the baseline do not; this time counts"
    )
    finding = Finding(check="slower_inputs", severity="warning", message=message)
    return replace(result, timing=charged, findings=(*result.findings, finding))


def _exceeds(ratio: float, given: Sequence[Block]) -> bool:
    usual = statistics.median(_list_ratios(given))
    usual_us = statistics.median(block.baseline_reported_us for block in given)
    return ratio > LOSS * usual and (ratio - usual) * usual_us > LOSS_US


def _list_ratios(blocks: Sequence[Block]) -> list[float]:
    return [block.candidate_reported_us / block.baseline_reported_us for block in blocks]
