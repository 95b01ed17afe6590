import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.intervals import bootstrap_ratio_interval, ranked_ratio_interval

TIMES = st.floats(min_value=0.01, max_value=1e7)
PAIRS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=40)
SEEDS = st.integers(min_value=0, max_value=2**32)


def split(pairs):
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def by_ranks(baseline, candidate, *, seed):
    del seed
    return ranked_ratio_interval(baseline, candidate)


@given(PAIRS, SEEDS, st.floats(min_value=0.01, max_value=0.99))
def test_the_interval_holds_the_median_and_lies_within_the_ratios(pairs, seed, confidence):
    baseline, candidate = split(pairs)
    ratios = [b / c for b, c in pairs]
    median, low, high = bootstrap_ratio_interval(baseline, candidate, confidence=confidence, seed=seed)
    assert low <= median <= high
    assert median == pytest.approx(statistics.median(ratios))
    assert low >= min(ratios) * (1 - 1e-12)
    assert high <= max(ratios) * (1 + 1e-12)


@given(PAIRS, SEEDS)
def test_the_same_seed_gives_the_same_interval(pairs, seed):
    baseline, candidate = split(pairs)
    first = bootstrap_ratio_interval(baseline, candidate, seed=seed)
    assert bootstrap_ratio_interval(baseline, candidate, seed=seed) == first


@given(st.lists(TIMES, min_size=1, max_size=20), SEEDS)
def test_equal_times_give_a_ratio_of_exactly_one(times, seed):
    assert bootstrap_ratio_interval(times, times, seed=seed) == (1.0, 1.0, 1.0)


def test_disturbances_that_hit_both_sides_of_a_pair_leave_the_ratio_alone():
    load = [1.0, 1.5, 4.0, 1.1, 9.0, 1.0, 2.0, 1.3]
    median, low, high = bootstrap_ratio_interval([2 * x for x in load], load, seed=1)
    assert (median, low, high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("pairs", [10, 25, 60])
@pytest.mark.parametrize("interval", [by_ranks, bootstrap_ratio_interval])
@pytest.mark.quick(2)
def test_interval_of_equal_programs_contains_one_at_its_nominal_rate(pairs, interval):
    source = random.Random(pairs)
    noise = lambda: [100.0 * source.lognormvariate(0.0, 0.05) for _ in range(pairs)]  # noqa: E731
    runs = 300
    covered = 0
    for seed in range(runs):
        _, low, high = interval(noise(), noise(), seed=seed)
        covered += low <= 1.0 <= high
    assert 0.90 <= covered / runs <= 0.995


@given(PAIRS)
def test_rank_interval_contains_the_median_and_ends_at_two_ratios(pairs):
    baseline, candidate = split(pairs)
    median, low, high = ranked_ratio_interval(baseline, candidate)
    ratios = [b / c for b, c in pairs]
    assert low <= median <= high
    assert {low, high} <= set(ratios)
    assert median == pytest.approx(statistics.median(ratios))


def test_ranks_agree_with_resampling_about_the_width():
    source = random.Random(11)
    baseline, candidate = ([source.lognormvariate(0.0, 0.05) for _ in range(100)] for _ in range(2))
    _, low, high = ranked_ratio_interval(baseline, candidate)
    _, resampled_low, resampled_high = bootstrap_ratio_interval(baseline, candidate, seed=1)
    assert high - low == pytest.approx(resampled_high - resampled_low, rel=0.35)


def test_more_confidence_gives_a_wider_interval():
    source = random.Random(3)
    baseline = [source.uniform(1, 2) for _ in range(50)]
    candidate = [source.uniform(1, 2) for _ in range(50)]
    _, low, high = bootstrap_ratio_interval(baseline, candidate, confidence=0.5, seed=1)
    _, lower, higher = bootstrap_ratio_interval(baseline, candidate, confidence=0.99, seed=1)
    assert lower < low < high < higher


@pytest.mark.parametrize(
    ("baseline", "candidate", "confidence"),
    [
        ([], [], 0.95),
        ([1.0], [1.0, 2.0], 0.95),
        ([0.0], [1.0], 0.95),
        ([1.0], [-1.0], 0.95),
        ([float("nan")], [1.0], 0.95),
        ([float("inf")], [1.0], 0.95),
        ([1.0], [1.0], 1.0),
    ],
)
def test_times_that_mean_nothing_are_refused(baseline, candidate, confidence):
    with pytest.raises(ValueError, match=r"pairs?|positive|confidence"):
        bootstrap_ratio_interval(baseline, candidate, confidence=confidence, seed=1)
