"""Whole calls of baseline, candidate and baseline on a GPU, with simulated workers: made-up times, computed outputs."""

import itertools
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from simulated_gpu import WRITTEN_US, SimulatedSession, make_reference

from harness.domain import Outcome
from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing.apart import (
    LEAST_SLOW_CALLS,
    MAX_WARMUP_CALLS,
    ApartTimer,
    count_warmup_calls,
)

BASELINE_US = 1000.0
PLAN = TimingPlan(budget_s=0.2, allow_load=True)


@pytest.fixture(scope="module")
def reference():
    return make_reference()


@pytest.fixture
def measure(reference):
    """The result, and the sessions in the order in which they were opened."""

    def run(*usual_us, plan=PLAN, steps=(), by=reference, **candidate):
        opened, times = [], iter(usual_us)

        @contextmanager
        def open_session(**how):
            take_us = next(times)
            opened.append(SimulatedSession(take_us if callable(take_us) else lambda inputs: take_us, **how))
            yield opened[-1]

        timer = ApartTimer(reference=replace(by, timed_steps=steps), plan=plan, seed=3)
        opens = open_session, lambda: open_session(**candidate)
        return timer.measure("eager", *opens, itertools.count(100)), opened

    return run


def test_a_candidate_is_timed_between_two_workers_of_the_baseline(measure):
    result, opened = measure(BASELINE_US, BASELINE_US / 2, BASELINE_US)
    assert (result.outcome, result.timing.verdict, len(opened)) == (None, "faster", 3)
    assert result.timing.speedup == pytest.approx(2.0, rel=0.05)
    assert result.timing.candidate_us == pytest.approx(BASELINE_US / 2, rel=0.05)  # not the time that it reports


def test_equal_programs_tie(measure):
    result, _ = measure(BASELINE_US, BASELINE_US, BASELINE_US)
    assert result.timing.verdict == "tie"


def test_work_done_while_inputs_are_written_makes_no_program_faster(measure):
    result, _ = measure(BASELINE_US, BASELINE_US, BASELINE_US, ahead_us=WRITTEN_US)
    assert result.timing.verdict == "tie"
    assert result.timing.speedup > 1.1


def test_work_done_while_a_program_is_woken_counts(measure):
    result, _ = measure(BASELINE_US, BASELINE_US / 2, BASELINE_US, woken_us=0.4 * BASELINE_US)
    assert result.timing.verdict == "faster"
    assert result.timing.speedup == pytest.approx(2.0, rel=0.05)


def test_drift_of_the_baseline_widens_the_interval(measure):
    result, _ = measure(BASELINE_US, BASELINE_US / 1.2, 1.3 * BASELINE_US)
    assert result.timing.verdict == "tie"
    assert result.timing.noise_floor == pytest.approx(0.3, abs=0.02)


def test_wrong_outputs_of_timed_calls_are_suspect(measure):
    result, _ = measure(BASELINE_US, BASELINE_US / 2, BASELINE_US, spoil=lambda outputs: outputs * 1.1)
    assert result.outcome is Outcome.SUSPECT
    assert "a timed call was wrong" in result.message


@pytest.mark.parametrize("number", [10, 25])
def test_one_wrong_call_among_many_is_suspect(measure, number):
    calls = itertools.count(1)
    result, (_, candidate, _) = measure(
        BASELINE_US, BASELINE_US / 2, BASELINE_US, spoil=lambda outputs: outputs + (next(calls) == number)
    )
    assert candidate.calls > number
    assert result.outcome is Outcome.SUSPECT
    assert "a timed call was wrong" in result.message


@pytest.mark.parametrize(("deterministic", "outcome"), [(True, Outcome.SUSPECT), (False, None)])
def test_whole_calls_give_the_same_bits_where_the_problem_asks_for_it(measure, deterministic, outcome):
    factors = itertools.cycle([1.0 + number * 2**-23 for number in range(-5, 6)])
    for spoil, expected in ((lambda outputs: outputs, None), (lambda outputs: outputs * next(factors), outcome)):
        result, (before, candidate, _) = measure(
            BASELINE_US, BASELINE_US / 2, BASELINE_US, by=make_reference(deterministic=deterministic), spoil=spoil
        )
        assert result.outcome is expected
        assert ("calls with the same inputs differ" in result.message) == (expected is not None)
        pairs = len(result.timing.blocks)  # half of them in each of the baseline's workers
        assert candidate.calls - pairs == before.calls - pairs // 2 + deterministic


def test_the_slowest_kind_of_inputs_counts(measure):
    def take_us(inputs):
        return BASELINE_US if inputs.max() > 6 else BASELINE_US / 4  # 6 is far beyond 64 normal values

    result, _ = measure(BASELINE_US, take_us, BASELINE_US, steps=("large",))
    assert result.timing.speedup == pytest.approx(1.0, rel=0.1)
    assert [finding.check for finding in result.findings] == ["slower_inputs"]


def test_a_far_slower_candidate_is_not_measured_to_the_end(measure):
    def take_us(factor):
        def take(inputs):
            time.sleep(0.005)
            return factor * BASELINE_US

        return take

    plan = replace(PLAN, budget_s=0.03)
    calls = []
    for factor, verdict in ((5.0, "slower"), (1.0, "tie")):
        result, (_, candidate, _) = measure(take_us(1.0), take_us(factor), take_us(1.0), plan=plan)
        assert result.timing.verdict == verdict
        calls.append(candidate.calls)
    assert calls[0] < calls[1]


def test_calls_are_warm_when_outputs_come_in_known_memory(monkeypatch):
    session = SimulatedSession(lambda inputs: 1.0)
    news = iter([True, True, False, False, False, False, False, False])
    counted = 0
    for _ in count_warmup_calls(session, 3):
        session.saw_new_memory, counted = next(news), counted + 1
    assert counted == 6
    assert LEAST_SLOW_CALLS < MAX_WARMUP_CALLS


@pytest.mark.parametrize(
    ("usual_us", "call_s", "count"),
    [(1e3, 1e-3, 75), (1e3, 0.1, 15), (1e3, 0.5, 10), (1e3, 2.0, 3), (2e6, 2.1, 3)],
    ids=["most", "budget", "least", "slow around the call", "slow"],
)
def test_baseline_timed_twice_gets_half_the_pairs_and_slow_calls_fewer(reference, usual_us, call_s, count):
    assert ApartTimer(reference=reference, plan=TimingPlan(), seed=3)._count_calls(usual_us, call_s) == count
