"""A timed candidate is compared with the best program of its search before, in A/B pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import small_problem

from harness.domain import Candidate, Outcome, Rival
from harness.evaluation.timing.paired import TimingPlan

CASES = 'CASES = [{"name": "given"}, {"name": "tall", "sizes": {"rows": 80}}]\n'
PROBLEM = small_problem.read("return x * self.weight")
QUICK = TimingPlan(budget_s=1.0, min_blocks=10, warmup_calls=1, allow_load=True)
# Two cases share the pairs. Of fewer than ten pairs one late wake-up makes the clock's resolution too coarse.
QUICK_WITH_CASES = replace(QUICK, min_blocks=2 * QUICK.min_blocks)


def write(milliseconds: int) -> str:
    """A program that takes its time, which the load of the machine hardly changes."""
    return small_problem.write(f"import time\ntime.sleep({milliseconds} / 1000)\nreturn x * self.weight")


def rival_of(source: str, **lows: float) -> Rival:
    """`lows`: by case; `whole`: of a problem without cases."""
    by_case = {"" if name == "whole" else name: low for name, low in lows.items()}
    return Rival(turn=4, candidate=Candidate(source=source, language="cpp", rule="file"), speedup_lows=by_case)


@pytest.fixture
def compare(bench):
    def run(source, rival, problem=PROBLEM, plan=QUICK):
        for _ in range(8):
            evaluation = bench.evaluate(source, problem, time=True, plan=plan, attribute_work=False, rival=rival)
            assert evaluation.outcome is Outcome.CORRECT, evaluation.message
            notes = [one.message for one in evaluation.findings if one.check == "comparison"]
            if evaluation.timing.verdict != "unreliable" and not any("unreliable" in note for note in notes):
                return evaluation
        pytest.skip("eight timings in a row were unreliable: the machine is too busy")

    return run


@pytest.mark.slow
def test_a_candidate_that_is_twice_as_fast_as_the_rival_gains(compare):
    comparison = compare(write(20), rival_of(write(50))).comparison
    assert comparison.turn == 4
    assert 1 < comparison.speedup_low <= comparison.speedup <= comparison.speedup_high


@pytest.mark.slow
def test_a_program_gains_nothing_over_itself(compare):
    comparison = compare(write(50), rival_of(write(50))).comparison
    assert comparison.speedup_low < 1


@pytest.mark.slow
def test_a_candidate_that_is_certainly_slower_is_not_compared(compare):
    evaluation = compare(write(50), rival_of(write(50), whole=1000.0))
    assert evaluation.comparison is None
    assert "comparison" not in dict(evaluation.phases_s)


@pytest.mark.parametrize("rival", ["raise ValueError('rival')", "import os; os._exit(3)"])
@pytest.mark.slow
def test_a_rival_that_fails_costs_the_candidate_nothing(compare, rival):
    evaluation = compare(write(20), rival_of(small_problem.write(rival)))
    assert evaluation.comparison is None
    assert evaluation.timing is not None
    assert any(one.message.startswith("not compared with turn 4: ") for one in evaluation.findings)


@pytest.mark.slow
def test_the_cases_are_compared_together(compare):
    problem = small_problem.read("return x * self.weight", settings=CASES)
    evaluation = compare(write(120), rival_of(write(240)), problem, QUICK_WITH_CASES)
    assert [case.timing is not None for case in evaluation.cases] == [True, True]
    assert evaluation.comparison.speedup_low > 1
