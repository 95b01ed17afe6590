"""Which cases of a candidate are compared with the best program before, and what a rival that fails changes."""

from __future__ import annotations

import pytest

from harness.domain import Block, Candidate, Case, HarnessError, Rival, Timing
from harness.evaluation.cases import CaseRun
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.results import TimingResult
from harness.evaluation.timing_steps import compare_with_rival

BLOCK = Block(
    calls=1,
    baseline_reported_us=200.0,
    candidate_reported_us=100.0,
    baseline_evaluator_us=210.0,
    candidate_evaluator_us=110.0,
)


def time(speedup: float, verdict: str = "faster", blocks: tuple[Block, ...] = ()) -> Timing:
    return Timing(
        baseline="eager", baseline_us=100.0 * speedup, candidate_us=100.0, speedup=speedup, speedup_low=0.9 * speedup,
        speedup_high=1.1 * speedup, verdict=verdict, blocks=blocks, overhead_us=1.0, noise_floor=0.05,
    )  # fmt: skip


def win() -> TimingResult:
    return TimingResult(timing=time(2.0, blocks=(BLOCK,) * 10))


def run_cases(timings: dict[str, Timing], measure=win, **lows: float) -> tuple[EvaluationRecord, list[str]]:
    """The record, and the cases that were compared."""
    rival = Rival(turn=3, candidate=Candidate(source="x", language="cpp", rule="file"), speedup_lows=lows)
    record, compared = EvaluationRecord(seed=0), []
    for name, timing in timings.items():
        record.timing = timing
        compare_with_rival(
            record, CaseRun(case=Case(name=name)), rival, lambda name=name: (compared.append(name), measure())[1]
        )
    return record, compared


def test_case_below_the_mean_speedup_of_the_rival_is_compared():
    record, compared = run_cases({"small": time(1.2), "large": time(6.0)}, small=1.0, large=5.0)
    assert list(dict.fromkeys(compared)) == ["small", "large"]
    assert all(one.speedup_low > 1 for _, one in record.comparisons)


def test_comparison_ends_after_a_certainly_slower_case():
    record, compared = run_cases({"small": time(1.2), "large": time(6.0)}, small=1.5, large=5.0)
    assert compared == []
    assert [one for _, one in record.comparisons] == [None, None]


@pytest.mark.parametrize("verdict", ["unreliable", "unconfirmed"])
def test_a_time_that_is_not_confirmed_is_not_compared(verdict):
    assert run_cases({"small": time(2.0, verdict)})[1] == []


def test_an_error_that_a_rival_causes_in_the_evaluator_is_a_note():
    def fail():
        raise HarnessError("cuda:0 was not idle within 10 s")

    record, _ = run_cases({"small": time(2.0)}, fail)
    assert [one for _, one in record.comparisons] == [None]
    (finding,) = record.findings
    assert (finding.severity, finding.message) == (
        "note", "case small: not compared with turn 3: cuda:0 was not idle within 10 s",
    )  # fmt: skip


def tie() -> TimingResult:
    equal = Block(
        calls=1,
        baseline_reported_us=100.0,
        candidate_reported_us=100.0,
        baseline_evaluator_us=110.0,
        candidate_evaluator_us=110.0,
    )
    return TimingResult(timing=time(1.0, blocks=(equal,) * 10))


@pytest.mark.parametrize(
    ("results", "measured", "gains"), [((win, win), 2, True), ((win, tie), 2, False), ((tie, win), 1, False)]
)
def test_only_a_gain_that_repeats_counts(results, measured, gains):
    left = list(results)
    record, compared = run_cases({"only": time(2.0)}, measure=lambda: left.pop(0)())  # noqa: PLW0108 - the result of the call is needed
    ((_, comparison),) = record.comparisons
    assert (len(compared), comparison.is_gain) == (measured, gains)


def doubt() -> TimingResult:
    return TimingResult(timing=time(2.0, "unreliable", blocks=(BLOCK,) * 10))


def test_a_gain_whose_repetition_is_unreliable_does_not_count_and_says_so():
    left = [win, doubt]
    record, _ = run_cases({"only": time(2.0)}, measure=lambda: left.pop(0)())  # noqa: PLW0108 - as above
    ((_, comparison),) = record.comparisons
    assert comparison.speedup_low is None
    (finding,) = record.findings
    assert finding.message == "case only: not compared with turn 3: the time in these pairs is unreliable"


def test_a_gain_whose_repetition_fails_does_not_count():
    left = [win]
    record, compared = run_cases({"only": time(2.0)}, measure=lambda: left.pop()())  # noqa: PLW0108 - as above
    assert len(compared) == 2
    assert [one for _, one in record.comparisons] == [None]
    assert record.findings[-1].message.startswith("case only: not compared with turn 3: ")
