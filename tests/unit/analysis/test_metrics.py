from itertools import combinations
from math import isclose, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.metrics import (
    FAST_THRESHOLDS,
    Draws,
    count_outcomes,
    estimate_at_k,
    estimate_fast,
    estimate_fast_at_k,
    geometric_mean,
)
from harness.domain import Outcome, UsageError

OUR_FAULT = (Outcome.PROBLEM_ERROR, Outcome.HARNESS_ERROR, Outcome.NOT_RUN)


@st.composite
def draws(draw, max_samples=6):
    outcomes = tuple(draw(st.lists(st.sampled_from(Outcome), max_size=max_samples)))
    correct = outcomes.count(Outcome.CORRECT)
    speedups = tuple(draw(st.lists(st.sampled_from((0.3, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)), max_size=correct)))
    return Draws(problem=draw(st.sampled_from("abc")), outcomes=outcomes, speedups=speedups)


def successes_by_hand(one, threshold):
    """The evaluated samples of a problem as a list of success flags."""
    correct = one.outcomes.count(Outcome.CORRECT)
    flags = [speedup > threshold for speedup in one.speedups] + [threshold == 0.0] * (correct - len(one.speedups))
    failed = sum(outcome not in (Outcome.CORRECT, *OUR_FAULT) for outcome in one.outcomes)
    return flags + [False] * failed


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_the_estimate_at_k_is_what_counting_every_subset_gives(numbers):
    n, c, k = numbers
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert isclose(estimate_at_k(n, c, k), sum(map(any, subsets)) / len(subsets), abs_tol=1e-12)


def test_the_estimate_at_k_is_stable_for_many_samples():
    assert isclose(estimate_at_k(100_000, 1, 50_000), 0.5)
    assert estimate_at_k(100_000, 0, 99_999) == 0.0
    assert estimate_at_k(100_000, 100_000, 1) == 1.0


@pytest.mark.parametrize("k", [0, -1, 4])
def test_a_k_that_the_samples_cannot_give_is_an_error(k):
    with pytest.raises(UsageError, match="between 1 and the number of samples, 3"):
        estimate_at_k(3, 1, k)


@given(st.lists(draws(), max_size=5), st.sampled_from(FAST_THRESHOLDS))
def test_fast_p_is_the_mean_over_problems_of_sample_shares(problems, threshold):
    shares = []
    for one in problems:
        flags = successes_by_hand(one, threshold)
        if flags or not one.outcomes:
            shares.append(sum(flags) / len(flags) if flags else 0.0)
    expected = sum(shares) / len(shares) if shares else None
    assert estimate_fast(problems, threshold) == (expected if expected is None else pytest.approx(expected))


@given(st.lists(draws(max_samples=5), max_size=4), st.sampled_from(FAST_THRESHOLDS), st.integers(1, 3))
def test_fast_p_at_k_equals_a_count_over_all_subsets(problems, threshold, k):
    shares, short = [], False
    for one in problems:
        flags = successes_by_hand(one, threshold)
        short |= 0 < len(flags) < k
        if flags and not short:
            subsets = list(combinations(flags, k))
            shares.append(sum(map(any, subsets)) / len(subsets))
        elif not one.outcomes:
            shares.append(0.0)
    if short:
        with pytest.raises(UsageError, match="needs at least"):
            estimate_fast_at_k(problems, threshold, k)
        return
    expected = pytest.approx(sum(shares) / len(shares)) if shares else None
    assert estimate_fast_at_k(problems, threshold, k) == expected


@given(st.lists(draws(), max_size=5))
def test_at_one_draw_fast_p_at_k_is_fast_p(problems):
    for threshold in FAST_THRESHOLDS:
        assert estimate_fast_at_k(problems, threshold, 1) == pytest.approx(estimate_fast(problems, threshold))


def test_a_speedup_of_exactly_p_is_not_above_p():
    one = Draws(problem="add", outcomes=(Outcome.CORRECT,), speedups=(1.0,))
    assert estimate_fast([one], 1.0) == 0.0
    assert estimate_fast([one], 0.8) == 1.0


def test_a_correct_sample_without_a_time_counts_for_correctness_only():
    one = Draws(problem="add", outcomes=(Outcome.CORRECT,))
    assert estimate_fast([one], 0.0) == 1.0
    assert estimate_fast([one], 0.5) == 0.0


@pytest.mark.parametrize("fault", OUR_FAULT)
def test_harness_errors_are_excluded_from_rates(fault):
    solved = Draws(problem="add", outcomes=(Outcome.CORRECT, fault), speedups=(2.0,))
    dropped = Draws(problem="mul", outcomes=(fault,))
    assert estimate_fast([solved, dropped], 0.0) == 1.0
    assert estimate_fast([dropped], 0.0) is None
    assert estimate_fast_at_k([dropped], 0.0, 1) is None


def test_a_problem_without_any_sample_counts_as_not_solved():
    solved = Draws(problem="add", outcomes=(Outcome.CORRECT,), speedups=(2.0,))
    missing = Draws(problem="mul", outcomes=())
    assert estimate_fast([solved, missing], 1.0) == 0.5
    assert estimate_fast_at_k([solved, missing], 1.0, 1) == 0.5


@given(st.lists(draws(), max_size=5))
def test_outcomes_are_counted_once_each(problems):
    counted = dict(count_outcomes(problems))
    assert sum(counted.values()) == sum(len(one.outcomes) for one in problems)
    assert all(counted[outcome] == sum(one.outcomes.count(outcome) for one in problems) for outcome in counted)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8))
def test_the_geometric_mean_is_the_root_of_the_product(speedups):
    assert isclose(geometric_mean(speedups), prod(speedups) ** (1 / len(speedups)), rel_tol=1e-9)


def test_there_is_no_mean_of_no_speedups():
    assert geometric_mean([]) is None
