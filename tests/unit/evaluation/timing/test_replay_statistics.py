"""Statistics of replays: steady pairs, hopeless candidates, forged events, slower inputs, lower bounds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import Conditions, Timing
from harness.evaluation.results import TimingResult
from harness.evaluation.timing import replay_statistics as timing
from harness.evaluation.timing.block_statistics import GIVEN

TIMES = st.floats(min_value=1.0, max_value=1e6)


def times(device=(), host=(), **kinds):
    return timing.ReplayTimes(device={GIVEN: list(device), **kinds}, host=list(host))


def test_few_pairs_are_not_steady():
    assert not timing.is_steady([(10.0, 10.0)] * (timing.STEADY_PAIRS - 1))


@given(TIMES, TIMES)
def test_equal_pairs_are_steady(theirs, mine):
    assert timing.is_steady([(theirs, mine)] * timing.STEADY_PAIRS)


def test_scattered_pairs_are_not_steady():
    assert not timing.is_steady([(10.0, 10.0 + one) for one in range(timing.STEADY_PAIRS)])


def test_a_candidate_that_is_far_slower_in_each_pair_is_hopeless():
    slow = [(1.0, 1.01 * timing.HOPELESS)] * timing.DECIDED_PAIRS
    assert timing.is_far_slower(times(slow))
    assert not timing.is_far_slower(times(slow[1:]))
    assert not timing.is_far_slower(times([*slow, (1.0, 1.0)]))


def test_a_candidate_that_is_far_faster_in_each_pair_needs_no_more():
    fast = [(1.01 * timing.FAR_FASTER, 1.0)] * timing.DECIDED_PAIRS
    assert timing.is_far_faster(times(fast))
    assert not timing.is_far_faster(times(fast[1:]))
    assert not timing.is_far_faster(times([*fast, (timing.FAR_FASTER, 1.01)]))


def test_times_below_the_resolution_decide_nothing():
    assert not timing.is_far_faster(times([(200.0, timing.EQUAL_US)] * timing.DECIDED_PAIRS))


def test_one_round_of_a_short_call_has_twice_the_floor():
    decided, long = (times([(50.0 * us, us)] * 5) for us in (100.0, 2 * timing.LONG_US))
    for one in (decided, long):
        one.alone_us = [50.0 * one.given[0][1]]
    floors = [timing.conclude_replays("eager", [one], Conditions()).timing.noise_floor for one in (decided, long)]
    shares = [timing.EQUAL_SHARE + timing.EQUAL_US / one.given[0][1] for one in (decided, long)]
    assert floors == pytest.approx([2 * shares[0], shares[1]])


@given(TIMES, TIMES)
def test_honest_events_hide_nothing(theirs, mine):
    rounds = [times(host=[(theirs, mine)] * 3)]
    assert timing.find_forged_us(rounds, theirs, mine) == 0


@given(TIMES, TIMES, st.floats(min_value=0.0, max_value=timing.FORGED_US))
def test_time_that_both_take_longer_by_the_host_counts_for_none(theirs, mine, more):
    rounds = [times(host=[(theirs + more, mine + more)] * 3)]
    assert timing.find_forged_us(rounds, theirs, mine) == 0


def test_time_that_events_hide_counts():
    assert timing.find_forged_us([times(host=[(100.0, 90.0)] * 3)], 100.0, 20.0) == pytest.approx(70.0)


def test_a_baseline_slower_by_the_host_hides_at_most_the_bound():
    rounds = [times(host=[(150.0, 70.0)] * 3)]
    assert timing.find_forged_us(rounds, 100.0, 20.0) == pytest.approx(50.0 - timing.FORGED_US)


def test_without_pairs_by_the_host_nothing_is_added():
    assert timing.find_forged_us([times()], 100.0, 20.0) == 0


@given(TIMES, TIMES)
def test_inputs_of_a_kind_that_take_both_as_long_are_no_slower(theirs, mine):
    assert timing.compare_kind([(theirs, mine)] * 5, [(theirs, mine)] * 5) == 1


@given(TIMES)
def test_a_kind_that_slows_both_down_is_no_slower(theirs):
    assert timing.compare_kind([(3 * theirs, 3 * theirs)] * 5, [(theirs, theirs)] * 5) == 1


def test_a_kind_that_slows_the_candidate_down_is_listed_with_its_factor():
    rounds = [times([(100.0, 50.0)] * 5, zeros=[(100.0, 100.0)] * 5, ones=[(100.0, 100.0)] * 4)]
    (found,) = timing.list_slower_inputs(rounds)
    assert (found.step, found.factor) == ("zeros", 2.0)


def time_calls(theirs, mine):
    ratio = theirs / mine
    timed = Timing(
        baseline="eager", baseline_us=theirs, candidate_us=mine, speedup=ratio, speedup_low=ratio * 0.9,
        speedup_high=ratio * 1.1, verdict="tie", blocks=(), overhead_us=0.0, noise_floor=0.0, resolution_us=0.0,
        conditions=Conditions(), clock="call",
    )  # fmt: skip
    return TimingResult(timing=timed, findings=())


@given(TIMES, TIMES, TIMES)
def test_a_lower_bound_is_device_time_over_call_time(theirs, mine, device):
    reason = timing.CandidateNotReplayable("it reads back", device)
    bound = timing.label_bound(time_calls(theirs, mine), reason).timing
    assert bound.speedup == pytest.approx(min(device, theirs) / mine)  # a part of a call is no longer than the call
    assert bound.clock == "bound"
    assert bound.speedup_low <= bound.speedup <= bound.speedup_high


@pytest.mark.parametrize(("mine", "verdict"), [(100.0, "tie"), (200.0, "slower"), (5.0, "faster")])
def test_a_lower_bound_alone_shows_no_slower_program(mine, verdict):
    called = time_calls(100.0, mine)
    known = timing.decide(called.timing.speedup_low, called.timing.speedup_high)
    called = replace(called, timing=replace(called.timing, verdict=known))
    bound = timing.label_bound(called, timing.CandidateNotReplayable("it reads back", 10.0)).timing
    assert bound.verdict == verdict


def test_without_a_recorded_baseline_call_times_stand_against_each_other():
    result = time_calls(20.0, 10.0)
    labelled = timing.label_bound(result, timing.NotReplayable("it reads back"))
    assert labelled.timing == result.timing
    assert "it reads back" in labelled.findings[-1].message
