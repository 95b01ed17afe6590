"""Problems with several cases, from the file to the verdict."""

from __future__ import annotations

import math
from io import StringIO

import pytest
import small_problem
from rich.console import Console

from harness.domain import Outcome
from harness.evaluation.timing.paired import TimingPlan
from harness.report.terminal.details import render_details
from harness.store.results import ResultStore, StoredEvaluation

DISTRIBUTIONS = 'DISTRIBUTIONS = ("as_given", "large", "zeros")\n'
CASES = """
CASES = [
    {"name": "given"},
    {"name": "tall", "sizes": {"rows": 301}},
    {"name": "wide", "sizes": {"rows": 3, "columns": 501}},
    {"name": "half", "dtype": "bfloat16", "timed": False},
]
"""
LARGEST_FIRST = """
CASES = [
    {"name": "tall", "sizes": {"rows": 3001}},
    {"name": "given"},
    {"name": "flat", "sizes": {"rows": 2, "columns": 99}},
]
"""
RANGES = 'RANGES = {"rows": (1000, 20000)}\n'
QUICK = TimingPlan(budget_s=0.2, min_blocks=4, min_blocks_when_slow=2, warmup_calls=1, allow_load=True)


def read(settings: str):
    return small_problem.read("return x * self.weight + x.abs()", settings=DISTRIBUTIONS + settings)


def write(hook: str = "pass") -> str:
    return small_problem.write(f"{hook}\nreturn x.abs() + x * self.weight")


def test_a_candidate_that_is_right_in_every_case_is_correct(bench):
    evaluation = bench.evaluate(write(), read(CASES))
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    names = ["given", "tall", "wide", "half"]
    assert [case.name for case in evaluation.cases] == names
    assert [case.sizes for case in evaluation.cases] == ["", "rows=301", "rows=3, columns=501", "bfloat16"]
    assert list(dict.fromkeys(trial.case for trial in evaluation.correctness.trials)) == names
    sizes = {trial.case: trial.elements for trial in evaluation.correctness.trials}
    assert sizes == {"given": 64 * 48, "tall": 301 * 48, "wide": 3 * 501, "half": 64 * 48}


@pytest.mark.parametrize(
    ("hook", "case"),
    [
        ("if x.size(0) == 301: return x * self.weight", "case tall (rows=301): "),
        ("if x.dtype == torch.bfloat16: x = x.clone().mul_(1.5)", "case half (bfloat16): "),
    ],
)
def test_a_case_that_is_wrong_makes_the_candidate_wrong_and_is_named(bench, hook, case):
    evaluation = bench.evaluate(write(hook), read(CASES))
    assert evaluation.outcome is Outcome.WRONG_VALUE
    assert evaluation.message.startswith(case)
    outcomes = {one.name: one.outcome for one in evaluation.cases}
    assert outcomes.pop(case.split()[1]) is Outcome.WRONG_VALUE
    assert set(outcomes.values()) == {Outcome.CORRECT}


@pytest.mark.parametrize("is_wrong", [True, False])
def test_smallest_case_is_first_and_wrong_output_ends_evaluation(bench, is_wrong):
    candidate = write("return x" if is_wrong else "pass")
    evaluation = bench.evaluate(candidate, read(LARGEST_FIRST), time=is_wrong, plan=QUICK)
    assert evaluation.outcome is (Outcome.WRONG_VALUE if is_wrong else Outcome.CORRECT), evaluation.message
    names = ["flat"] if is_wrong else ["tall", "given", "flat"]
    assert [case.name for case in evaluation.cases] == names
    assert list(dict.fromkeys(trial.case for trial in evaluation.correctness.trials)) == names
    if is_wrong:
        assert not {"work", "timing", "probes"} & {name for name, _ in evaluation.phases_s}


def test_case_that_the_reference_cannot_run_is_named_and_not_counted(bench):
    problem = read('CASES = [{"name": "given"}, {"name": "empty", "sizes": {"columns": -1}}]')
    evaluation = bench.evaluate(write(), problem)
    assert evaluation.outcome is Outcome.PROBLEM_ERROR
    assert evaluation.message.startswith("case empty (columns=-1): ")


def test_workload_with_only_the_given_sizes_has_no_cases(bench):
    evaluation = bench.evaluate(write("return x * 2"), read('CASES = [{"name": "given"}]'))
    assert (evaluation.outcome, evaluation.cases) == (Outcome.WRONG_VALUE, ())
    assert "given" not in evaluation.message


@pytest.mark.slow
def test_secret_sizes_differ_between_evaluations_and_show_a_specialised_candidate(bench):
    problem = read(RANGES)
    first, again = (bench.evaluate(write(), problem, seed=seed) for seed in (1, 2))
    assert first.outcome is again.outcome is Outcome.CORRECT
    assert [case.is_secret for case in first.cases] == [False, True]
    assert first.cases[1].sizes != again.cases[1].sizes
    specialised = bench.evaluate(write("x = x[:64] if x.size(0) > 64 else x"), problem)
    assert specialised.outcome is Outcome.WRONG_SHAPE
    assert specialised.message.startswith("case secret (rows=")


@pytest.fixture(scope="module")
def timed(bench):
    """A candidate that is right in every case, timed."""
    return bench.evaluate(write(), read(CASES + RANGES), time=True, plan=QUICK)


def test_the_speedup_is_the_geometric_mean_of_the_timed_known_cases(timed):
    evaluation, timings = timed, {case.name: case.timing for case in timed.cases if case.timing is not None}
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    assert list(timings) == ["given", "tall", "wide", "secret"]
    known = [timings[name] for name in ("given", "tall", "wide")]
    for name in ("speedup", "speedup_low", "speedup_high", "baseline_us"):
        mean = math.prod(getattr(timing, name) for timing in known) ** (1 / 3)
        assert getattr(evaluation.timing, name) == pytest.approx(mean)
    assert all(timing.blocks for timing in timings.values())
    assert evaluation.worst_case.timing.speedup == min(timing.speedup for timing in known)


def test_the_cases_survive_storage_and_are_shown(timed, tmp_path):
    with ResultStore.open(tmp_path) as store:
        stored = store.get(store.record(timed))
        (row,) = store.rows()
    assert stored.evaluation == timed
    assert row.worst_speedup == timed.worst_case.timing.speedup
    console = Console(width=80, file=StringIO(), color_system=None)
    console.print(render_details(StoredEvaluation(id=1, evaluation=timed)))
    text = " ".join(console.file.getvalue().split())
    for word in (
        "given",
        "rows=301",
        "rows=3, columns=501",
        "not timed",
        "geometric mean of 3 cases",
        "tall: as_given",
    ):
        assert word in text


BUILDS = """
from torch.utils.cpp_extension import load_inline

source = "torch::Tensor f(torch::Tensor x, torch::Tensor w) { return x * w + x.abs(); }"
extension = load_inline(name="f", cpp_sources=source, functions=["f"])
""" + small_problem.write("return extension.f(x, self.weight)")


@pytest.mark.slow
def test_an_extension_is_built_once_for_all_cases(bench):
    evaluation = bench.evaluate(BUILDS, read(CASES))
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    assert len(evaluation.cases) == 4
    assert len(evaluation.build.keys) == 1
