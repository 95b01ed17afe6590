"""The share of the gap between baseline and roofline that a candidate closes, and the rates that it achieves."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.domain import CaseResult, Outcome, RooflineBounds, Timing

TIMES_US = st.floats(0.1, 1e7)
FLOORS = st.just(0.0) | st.floats(1e-6, 0.2)  # not roundings


def make_roofline(bound_us, operations_us=None, **changes):
    known = {"moved_bytes": 1, "flops": None, "bandwidth_gb_s": 1.0, "tflops": 1.0, "peak_fraction": None}
    return RooflineBounds(bound_us=bound_us, operations_us=operations_us, **(known | changes))


def share(baseline_us, candidate_us, bound_us, noise_floor=0.0, operations_us=None):
    return make_roofline(bound_us, operations_us).share_of_gap(baseline_us, candidate_us, noise_floor)


def make_timing(candidate_us, baseline_us=100.0, verdict="faster", noise_floor=0.0):
    speedup = baseline_us / candidate_us
    return Timing(
        baseline="eager", baseline_us=baseline_us, candidate_us=candidate_us, speedup=speedup, speedup_low=speedup,
        speedup_high=speedup, verdict=verdict, blocks=(), overhead_us=0.0, noise_floor=noise_floor,
    )  # fmt: skip


@given(TIMES_US, TIMES_US, TIMES_US, FLOORS)
def test_a_share_lies_between_0_and_1(baseline_us, candidate_us, bound_us, floor):
    found = share(baseline_us, candidate_us, bound_us, floor)
    assert found is None or 0 <= found <= 1


@given(TIMES_US, TIMES_US, TIMES_US)
def test_a_candidate_that_is_not_faster_closes_nothing(baseline_us, more_us, bound_us):
    assert share(baseline_us, baseline_us + more_us, bound_us) in (0.0, None)
    assert share(baseline_us, baseline_us, bound_us) in (0.0, None)


@given(TIMES_US, TIMES_US, st.floats(0, 1))
def test_a_candidate_at_the_roofline_or_beyond_it_closes_all(bound_us, gap_us, part):
    assume(bound_us + gap_us > bound_us)
    assert share(bound_us + gap_us, bound_us * part, bound_us) == 1.0


@given(TIMES_US, TIMES_US, TIMES_US, TIMES_US)
def test_a_faster_candidate_never_closes_less(baseline_us, one_us, other_us, bound_us):
    assume(baseline_us > bound_us)
    fast, slow = sorted((one_us, other_us))
    assert share(baseline_us, fast, bound_us) >= share(baseline_us, slow, bound_us)


@given(TIMES_US, TIMES_US, TIMES_US, st.sampled_from([0.25, 2.0, 1024.0]))
def test_the_unit_of_time_does_not_matter(baseline_us, candidate_us, bound_us, scale):
    scaled = share(scale * baseline_us, scale * candidate_us, scale * bound_us)
    assert scaled == share(baseline_us, candidate_us, bound_us)


@given(TIMES_US, TIMES_US, FLOORS, st.floats(0.0, 1.0))
def test_there_is_no_gap_within_the_noise_floor_or_below_the_roofline(bound_us, candidate_us, floor, part):
    assert share(bound_us * (1 + floor * part * 0.99), candidate_us, bound_us, floor) is None
    assert share(bound_us * part + 1e-9, candidate_us, bound_us + 1e-9, floor) is None


def test_the_larger_of_both_bounds_is_the_roofline():
    assert share(100.0, 60.0, 10.0, operations_us=50.0) == share(100.0, 60.0, 50.0, operations_us=10.0) == 0.8


def test_without_a_bound_there_is_no_share():
    assert share(100.0, 50.0, 0.0) is None


@pytest.mark.parametrize(
    ("outcome", "verdict", "expected"),
    [
        ("correct", "faster", 0.75),
        ("correct", "slower", 0.75),
        ("correct", "tie", 0.0),
        ("correct", "unreliable", None),
        ("correct", "unconfirmed", None),
        ("suspect", "faster", None),
    ],
)
def test_only_a_confirmed_time_closes_a_gap(evaluation_of, outcome, verdict, expected):
    extra = {"timing": make_timing(40.0, verdict=verdict), "roofline": make_roofline(20.0)}
    assert evaluation_of(outcome, extra=extra).gap_closed == expected


def test_known_cases_with_a_gap_count_by_weight(evaluation_of):
    case = CaseResult(
        name="a", sizes="", outcome=Outcome.CORRECT, timing=make_timing(40.0), roofline=make_roofline(20.0)
    )
    cases = (
        case,
        replace(case, name="b", weight=3.0, timing=make_timing(80.0)),
        replace(case, name="at the roofline", weight=9.0, roofline=make_roofline(100.0)),
        replace(case, name="secret", is_secret=True, timing=make_timing(20.0)),
        replace(case, name="untimed", timing=None, roofline=None),
    )
    extra = {"timing": make_timing(50.0), "roofline": case.roofline, "cases": cases}
    assert evaluation_of("correct", extra=extra).gap_closed == pytest.approx((0.75 + 3 * 0.25) / 4)


def test_rates_are_those_of_the_first_timed_case(evaluation_of):
    roofline = make_roofline(20.0, moved_bytes=4_000_000, flops=8_000_000)
    first = CaseResult(name="a", sizes="", outcome=Outcome.CORRECT, timing=make_timing(40.0), roofline=roofline)
    extra = {"timing": make_timing(50.0), "roofline": roofline, "cases": (replace(first, timing=None), first)}
    of_cases = evaluation_of("correct", extra=extra)
    assert (of_cases.achieved_gb_s, of_cases.achieved_tflops) == (100.0, 0.2)
    single = evaluation_of("correct", extra=extra | {"cases": (), "roofline": replace(roofline, flops=None)})
    assert (single.achieved_gb_s, single.achieved_tflops) == (80.0, None)


def test_without_times_there_are_no_rates(evaluation_of):
    evaluation = evaluation_of("wrong_value")
    assert (evaluation.gap_closed, evaluation.achieved_gb_s, evaluation.achieved_tflops) == (None, None, None)
