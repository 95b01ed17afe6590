"""How the times of several cases become one verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain import Case, CaseResult, Comparison, Outcome, Problem, Timing, Work
from harness.evaluation.cases import CaseRun, combine_comparisons, combine_timings, list_runs, put_smallest_first
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.results import StepResult
from harness.problems.discovery import parse_problem


def time(speedup: float, low: float, high: float, verdict: str = "faster") -> Timing:
    return Timing(
        baseline="eager", baseline_us=100.0, candidate_us=100.0 / speedup, speedup=speedup, speedup_low=low,
        speedup_high=high, verdict=verdict, blocks=(), overhead_us=1.0, noise_floor=0.05,
    )  # fmt: skip


def result(name: str, timing: Timing | None, *, weight: float = 1.0, is_secret: bool = False) -> CaseResult:
    return CaseResult(name=name, sizes="", outcome=Outcome.CORRECT, weight=weight, is_secret=is_secret, timing=timing)


def test_speedup_and_interval_are_geometric_means():
    timing = combine_timings([result("a", time(4.0, 2.0, 8.0)), result("b", time(1.0, 0.5, 2.0, "tie"))])
    assert (timing.speedup, timing.speedup_low, timing.speedup_high) == pytest.approx((2.0, 1.0, 4.0))
    assert timing.baseline_us == pytest.approx(100.0)


@pytest.mark.parametrize(("known", "call_us"), [(True, 200.0), (False, None)])
def test_whole_calls_are_averaged_where_all_cases_have_them(known, call_us):
    one = replace(time(4.0, 2.0, 8.0), baseline_call_us=400.0, candidate_call_us=100.0)
    other = replace(one, candidate_call_us=400.0 if known else None)
    timing = combine_timings([result("a", one), result("b", other)])
    assert timing.candidate_call_us == (call_us and pytest.approx(call_us))
    assert timing.call_speedup == (call_us and pytest.approx(2.0))


def test_shared_uncertainty_of_many_cases_makes_no_win_of_a_tie():
    one = time(1.04, 0.99, 1.09, "tie")
    timing = combine_timings([result(str(n), one) for n in range(16)])
    assert (timing.speedup_low, timing.verdict) == (pytest.approx(0.99), "tie")


@pytest.mark.parametrize("verdict", ["tie", "slower"])
def test_cases_with_a_lower_bound_are_slower_if_one_is(verdict):
    bound = replace(time(0.2, 0.1, 0.3, "tie"), clock="bound")
    timing = combine_timings([result("a", bound), result("b", replace(bound, verdict=verdict))])
    assert timing.verdict == verdict


def test_weights_count():
    timing = combine_timings([result("a", time(8.0, 8.0, 8.0), weight=2.0), result("b", time(1.0, 1.0, 1.0))])
    assert timing.speedup == pytest.approx(4.0)


@pytest.mark.parametrize("verdict", ["unreliable", "unconfirmed"])
def test_one_time_that_is_not_confirmed_leaves_the_mean_unranked(verdict):
    timing = combine_timings([result("a", time(4.0, 3.0, 5.0)), result("b", time(4.0, 3.0, 5.0, verdict))])
    assert timing.verdict == verdict


def test_secret_and_untimed_cases_are_no_part_of_the_mean():
    known = result("a", time(2.0, 1.9, 2.1))
    timing = combine_timings([known, result("b", None), result("c", time(0.5, 0.4, 0.6), is_secret=True)])
    assert timing.speedup == pytest.approx(2.0)
    assert combine_timings([result("b", None)]) is None


def test_the_generalisation_gap_divides_known_by_secret_speedups(evaluation_of):
    cases = (result("a", time(4.0, 3.0, 5.0)), result("secret", time(2.0, 1.5, 2.5), is_secret=True))
    evaluation = evaluation_of("correct", 4.0, extra={"cases": cases})
    gap = evaluation.generalisation_gap
    assert (gap.ratio, gap.low, gap.high) == pytest.approx((2.0, 3.0 / 2.5, 5.0 / 1.5))
    assert evaluation.worst_case.name == "a"


def test_there_is_no_gap_without_a_confirmed_time_of_a_secret_case(evaluation_of):
    known, doubtful = result("a", time(4.0, 3.0, 5.0)), time(2.0, 1.5, 2.5, "unreliable")
    for cases in ((known,), (known, result("secret", None, is_secret=True))):
        assert evaluation_of("correct", 4.0, extra={"cases": cases}).generalisation_gap is None
    cases = (known, result("secret", doubtful, is_secret=True))
    assert evaluation_of("correct", 4.0, extra={"cases": cases}).generalisation_gap is None


def test_fully_checked_case_is_secret_and_derived_from_the_seed():
    problem = Problem(name="toy", suite="mine", source="", cases=tuple(Case(name=name) for name in "abc"))

    def find_full(seed: int) -> list[str]:
        return [run.name for _, run in list_runs(problem, "full", seed) if run.is_checked_fully]

    assert all(len(find_full(seed)) == 1 and find_full(seed) == find_full(seed) for seed in range(9))
    assert {name for seed in range(40) for name in find_full(seed)} == {"a", "b", "c"}


def test_comparisons_of_cases_become_their_weighted_mean():
    one = Comparison(turn=4, speedup=8.0, speedup_low=8.0, speedup_high=8.0)
    other = Comparison(turn=4, speedup=1.0, speedup_low=1.0, speedup_high=1.0)
    combined = combine_comparisons([(2.0, one), (1.0, other)])
    assert (combined.turn, combined.speedup, combined.speedup_low) == (4, pytest.approx(4.0), pytest.approx(4.0))
    assert combine_comparisons([(2.0, one), (1.0, Comparison(turn=4))]) == Comparison(turn=4)
    assert combine_comparisons([(2.0, one), (1.0, None)]) is None
    assert combine_comparisons([]) is None


SIZED = """
import torch
from torch import nn
rows, columns = 8, 16
class Model(nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [BODY]
def get_init_inputs():
    return []
CASES = [
    {"name": "tall", "sizes": {"rows": 99}},
    {"name": "given"},
    {"name": "half", "dtype": "float16"},
    {"name": "wide", "sizes": {"rows": 2, "columns": 17}},
]
RANGES = {"rows": (200, 300)}
"""


@pytest.mark.parametrize(
    ("drawn", "order"),
    [
        ("torch.randn(rows, columns)", ["wide", "half", "given", "tall", "secret"]),
        ("[torch.randn(rows, columns)]", ["wide", "half", "given", "tall", "secret"]),
        ("torch.randn(100 - rows, columns)[:1000]", ["tall", "half", "given", "wide"]),
        ("torch.randn(rows, int(torch.ones(1).tolist()[0]) * columns)",
         ["wide", "given", "half", "tall", "secret"]),
    ],
)  # fmt: skip
def test_cases_are_evaluated_in_the_order_of_the_size_of_their_inputs(drawn, order):
    source = SIZED.replace("BODY", drawn)
    if "secret" not in order:
        source = source[: source.index("RANGES")]
    problem = parse_problem(source, Path("toy.py"), "mine")
    runs = list_runs(problem, "full", 1)
    assert [run.name for _, run in runs] == [case.name for case in problem.cases]
    assert [run.name for _, run in put_smallest_first(runs, "full")] == order


NAMED = Work(custom=0.9, torch=0.1, library=0.0, other=0.0, custom_kernels=("scale",), without_custom="changed")
LEFT_TO_TORCH = Work(custom=0.05, torch=0.95, library=0.0, other=0.0)


@pytest.mark.parametrize(
    ("works", "share"),
    [
        ([NAMED, LEFT_TO_TORCH], 0.05),
        ([LEFT_TO_TORCH, NAMED], 0.05),
        ([NAMED, replace(NAMED, custom=0.95)], 0.9),
        ([replace(NAMED, custom=0.5), replace(NAMED, without_custom="unchanged")], 0.9),
        ([None, NAMED], 0.9),
    ],
    ids=["later", "earlier", "both its own", "of no effect", "not known"],
)
def test_the_smallest_share_of_a_case_counts(works, share):
    record = EvaluationRecord(seed=1)
    for number, work in enumerate(works):
        with record.at_case(CaseRun(case=Case(name=str(number)))):
            record.add_result(StepResult(work=work))
    record.combine_cases()
    assert (record.work.custom, record.work.custom_kernels) == (share, ("scale",))
    assert record.work.without_custom == ("unchanged" if works[-1].without_custom == "unchanged" else "changed")


@pytest.mark.parametrize(("sampled", "share"), [(NAMED, 0.9), (None, 0.0)])
def test_a_share_that_a_worker_reports_counts_where_no_case_is_sampled(sampled, share):
    record = EvaluationRecord(seed=1)
    with record.at_case(CaseRun(case=Case(name="reported"))):
        record.add_result(StepResult(work=replace(NAMED, custom=0.0)))
        record.set_profile_aside()
    with record.at_case(CaseRun(case=Case(name="sampled"))):
        record.add_result(StepResult(work=sampled))
    record.combine_cases()
    assert record.work.custom == share
