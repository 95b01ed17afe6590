"""Compares a timed candidate with the best earlier program of its search, the rival. The rival is untrusted, so the
comparison never changes the outcome.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.domain import Comparison, Finding, Rival, Timing
from harness.evaluation.cases import CaseRun
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.timing.clocks import TimingResult, interval_of

DOUBTFUL = ("unreliable", "unconfirmed")


def compare_with_rival(
    record: EvaluationRecord, run: CaseRun, rival: Rival, measure: Callable[[], TimingResult]
) -> None:
    """Measure a gain again, since equal programs may differ for the lifetime of their processes. Add None if the
    candidate is certainly slower in a case, its time is not confirmed, or a program failed.
    """
    if record.timing is None or run.is_secret:
        return
    comparison, doubt = None, ""
    if _may_gain(record.timing, rival, run) and all(one is not None for _, one in record.comparisons):
        try:
            with record.phase("comparison"):
                comparison, doubt = _measure_pairs(rival, measure)
                if comparison.is_gain:
                    again, doubt = _measure_pairs(rival, measure)
                    comparison = _take_lower(comparison, again)
        except Exception as error:  # noqa: BLE001 - a hostile rival may cause any
            comparison, doubt = None, str(error)
    if doubt:
        note = Finding(check="comparison", severity="note", message=f"not compared with turn {rival.turn}: {doubt}")
        record.findings.append(run.name_finding(note))
    record.comparisons.append((run.weight, comparison))


def _measure_pairs(rival: Rival, measure: Callable[[], TimingResult]) -> tuple[Comparison, str]:
    result = measure()
    return summarise_pairs(rival, result), find_doubt(result)


def _take_lower(first: Comparison, second: Comparison) -> Comparison:
    return second if (second.speedup_low or 0.0) < (first.speedup_low or 0.0) else first


def _may_gain(timing: Timing, rival: Rival, run: CaseRun) -> bool:
    return timing.verdict not in DOUBTFUL and timing.speedup_high > rival.speedup_lows.get(run.name, 0.0)


def find_doubt(result: TimingResult) -> str:
    if result.outcome is None and result.timing.verdict not in DOUBTFUL:
        return ""
    return result.message or f"the time in these pairs is {result.timing.verdict}"


def summarise_pairs(rival: Rival, result: TimingResult) -> Comparison:
    """The rival takes the baseline's place. Omit values if the pairs are not meaningful."""
    timing = result.timing
    if find_doubt(result):
        return Comparison(turn=rival.turn)
    ratio, low, high = interval_of(timing.blocks)
    share, widened = timing.speedup / ratio, 1 + (timing.noise_floor or 0.0)
    return Comparison(
        turn=rival.turn, speedup=timing.speedup, speedup_low=low * share / widened, speedup_high=high * share * widened
    )
