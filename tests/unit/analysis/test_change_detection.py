import math
import random
from dataclasses import replace

import pytest

from harness.analysis.change_detection import (
    FINE,
    HARNESS_FAILED,
    NOTHING_COMPARABLE,
    WORSE,
    Change,
    GateRule,
    classify_change,
    compare_speed,
    gate,
    needs_more,
)
from harness.domain import Block, Outcome

RULE = GateRule()


@pytest.fixture
def timed(evaluation_of):
    """A correct evaluation with that speedup, whose own interval is narrow, under a noise floor."""

    def make(speedup, floor=0.058, **changes):
        evaluation = evaluation_of("correct", speedup, **changes)
        width = 1.004 * (1 + floor)
        timing = replace(
            evaluation.timing, speedup_low=speedup / width, speedup_high=speedup * width, noise_floor=floor
        )
        return replace(evaluation, timing=timing)

    return make


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (("correct", 2.0), ("correct", 2.05), "same"),
        (("correct", 2.0), ("correct", 3.0), "faster"),
        (("correct", 3.0), ("correct", 2.0), "slower"),
        (("correct", 2.0), ("wrong_value", None), "broken"),
        (("correct", 2.0), ("suspect", 9.0), "broken"),
        (("build_error", None), ("correct", 2.0), "fixed"),
        (("wrong_value", None), ("timeout", None), "same"),
        (("correct", None), ("correct", None), "same"),
        (("correct", 2.0), ("correct", None), "unreliable"),
        (("correct", None), ("correct", 2.0), "unreliable"),
        (("correct", 2.0), ("not_run", None), "not_comparable"),
        (("not_run", None), ("correct", 2.0), "not_comparable"),
        (("not_run", None), ("not_run", None), "same"),
        (("harness_error", None), ("correct", 2.0), "not_comparable"),
        (("correct", 2.0), ("harness_error", None), "not_comparable"),
    ],
)
def test_each_pair_of_verdicts_seen_twice_gives_its_kind_of_change(evaluation_of, before, after, kind):
    change = classify_change([evaluation_of(*before)], [evaluation_of(*after)] * 2, RULE)
    assert change.kind == kind
    assert (change.before, change.after) == (before[0], after[0])


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [("not_run", "build_error", "broken"), ("build_error", "not_run", "fixed"), ("not_run", "not_run", "same")],
)
def test_without_a_device_builds_are_compared(evaluation_of, before, after, kind):
    before, after = (evaluation_of(outcome, device="none") for outcome in (before, after))
    assert classify_change([before], [after], RULE).kind == kind


def test_measured_candidate_is_not_compared_with_a_build_only_result(evaluation_of):
    before = evaluation_of("correct", 2.0, device="cuda:0")
    after = evaluation_of("not_run", device="none", extra={"message": "no device for cuda"})
    change = classify_change([before], [after], RULE)
    assert (change.kind, change.reason) == ("not_comparable", "not run now: no device for cuda")


def test_verdicts_that_differ_from_evaluation_to_evaluation_are_unreliable(evaluation_of):
    right, wrong = evaluation_of("correct", 2.0), evaluation_of("wrong_value")
    change = classify_change([right], [right, wrong], RULE)
    assert (change.kind, change.reason) == ("unreliable", "correct -> wrong_value in 1 of 2 evaluations")


def test_one_confirmed_time_is_not_enough_to_call_it_slower(timed, evaluation_of):
    unconfirmed = evaluation_of("correct", 1.0, verdict="unconfirmed")
    assert classify_change([timed(3.0)], [timed(1.0), unconfirmed], RULE).kind == "unreliable"
    assert classify_change([timed(3.0)], [timed(1.0), timed(1.0)], RULE).kind == "slower"


@pytest.mark.parametrize("verdict", ["unreliable", "unconfirmed"])
def test_a_time_that_was_not_confirmed_is_not_compared(evaluation_of, verdict):
    before, after = evaluation_of("correct", 9.0), evaluation_of("correct", 1.0, verdict=verdict)
    assert classify_change([before], [after, after], RULE).kind == "unreliable"


def test_a_tie_is_compared_by_what_was_measured(timed):
    before, after = timed(1.02, verdict="tie"), timed(0.7, verdict="slower")
    assert classify_change([before] * 3, [after] * 3, RULE).kind == "slower"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"problem_digest": "2" * 16}, "other problem version"),
        ({"candidate_digest": "d" * 16}, "other candidate"),
        ({"workload": "small"}, "other workload"),
        ({"baseline": "compile"}, "other baseline"),
        ({"device": "cuda:0"}, "other device: cpu -> cuda:0"),
        ({"extra": {"environment": (("cpu", "Another CPU"),)}}, "other hardware: Example CPU 9000 -> Another CPU"),
    ],
)
def test_evaluations_of_different_things_are_not_compared(evaluation_of, change, reason):
    compared = classify_change([evaluation_of("correct", 2.0)], [evaluation_of("correct", 2.0, **change)], RULE)
    assert compared.kind == "not_comparable"
    assert reason in compared.reason


@pytest.mark.parametrize(("name", "word"), [("driver", "driver"), ("threads", "number of threads")])
def test_another_driver_or_number_of_threads_is_named(evaluation_of, name, word):
    before, after = (
        evaluation_of("correct", 2.0, extra={"environment": (("cpu", "C"), (name, value))}) for value in ("1", "2")
    )
    assert classify_change([before], [after], RULE).reason == f"other {word}: 1 -> 2"


def test_where_nothing_was_timed_another_chip_does_not_matter(evaluation_of):
    before = evaluation_of("correct", extra={"environment": (("cpu", "A"),)}, device="emulated")
    after = evaluation_of("correct", extra={"environment": (("cpu", "B"),)}, device="emulated")
    assert classify_change([before], [after, after], RULE).kind == "same"


def test_two_devices_with_the_same_chip_are_compared(evaluation_of):
    before, after = (evaluation_of("correct", 2.0, device=device) for device in ("cuda:0", "cuda:1"))
    assert classify_change([before], [after, after], RULE).kind == "same"


def test_a_candidate_that_no_longer_reaches_its_device_is_broken(evaluation_of):
    change = classify_change([evaluation_of("correct", 2.0)], [evaluation_of("build_error", device="none")], RULE)
    assert (change.kind, change.reason) == ("broken", "correct -> build_error")


def test_the_ratio_is_that_of_the_medians_new_over_old(timed):
    speed = compare_speed([timed(2.0)], [timed(3.0), timed(9.0), timed(3.0)], RULE)
    assert (speed.before, speed.after, speed.ratio) == pytest.approx((2.0, 3.0, 1.5))
    assert speed.low < speed.ratio < speed.high


def test_more_stored_evaluations_make_smaller_changes_visible(timed):
    one, many = (compare_speed([timed(2.0)] * count, [timed(2.0)] * 2, RULE).visible for count in (1, 6))
    assert 1.05 < many < 1.10 < one


@pytest.mark.parametrize(("stored", "kind"), [(1, "same"), (2, "same"), (3, "slower")])
def test_one_or_two_stored_evaluations_may_be_stray_within_their_own_intervals(timed, stored, kind):
    """A fifth slower now, and an interval of each stored one that reaches down to that."""
    wide = timed(2.0)
    wide = replace(wide, timing=replace(wide.timing, speedup_low=1.5))
    change = classify_change([wide] * stored, [timed(1.6)] * 6, RULE)
    assert change.kind == kind
    assert (change.speed.visible > 1.3) == (kind == "same")
    assert classify_change([wide] * stored, [timed(1.4)] * 6, RULE).kind == "slower"


def test_a_higher_noise_floor_hides_larger_changes(timed):
    low, high = (compare_speed([timed(2.0, floor)], [timed(2.0, floor)] * 2, RULE).visible for floor in (0.02, 0.2))
    assert low < 1.12
    assert high > 1.3


def test_the_scatter_of_blocks_widens_the_interval(timed):
    def blocks(spread):
        return tuple(
            Block(
                calls=1, baseline_reported_us=100.0, candidate_reported_us=50.0 * (1 + spread * (n % 5 - 2)),
                baseline_evaluator_us=1.0, candidate_evaluator_us=1.0, baseline_copy_us=1.0, candidate_copy_us=1.0,
            )
            for n in range(20)
        )  # fmt: skip

    def measure(spread):
        one = timed(2.0)
        one = replace(one, timing=replace(one.timing, blocks=blocks(spread)))
        speed = compare_speed([one], [one, one], RULE)
        return speed.high / speed.low

    assert measure(0.2) > 1.1 * measure(0.001)


def test_unchanged_candidate_is_evaluated_twice_and_changed_one_up_to_the_limit(timed, evaluation_of):
    before = [timed(2.0)]
    assert needs_more(before, [], RULE)
    assert needs_more(before, [timed(2.0)], RULE)
    assert not needs_more(before, [timed(2.0)] * 2, RULE)
    assert needs_more(before, [timed(1.8)] * 5, RULE)
    assert not needs_more(before, [timed(1.8)] * 6, RULE)
    disturbed = evaluation_of("correct", 1.0, verdict="unreliable")
    assert needs_more(before, [disturbed] * 5, RULE)
    assert not needs_more(before, [disturbed] * 6, RULE)


def test_new_failure_is_evaluated_again_and_repeated_failure_is_not(evaluation_of):
    right, wrong = evaluation_of("correct", 2.0), evaluation_of("wrong_value")
    assert needs_more([right], [wrong], RULE)
    assert not needs_more([right], [wrong, wrong], RULE)
    assert needs_more([wrong], [right], RULE)
    assert not needs_more([wrong], [wrong], RULE)


def test_nothing_is_made_again_that_cannot_be_compared(evaluation_of):
    assert not needs_more([evaluation_of("correct", 2.0)], [evaluation_of("correct", 2.0, workload="small")], RULE)


def evaluate_random(source, timed, deviation, shift, stored):
    """One candidate check with evaluations that scatter as they do on a real machine."""
    draw = lambda centre: timed(math.exp(centre + source.gauss(0, deviation)))  # noqa: E731
    before, after = [draw(0.0) for _ in range(stored)], []
    while needs_more(before, after, RULE):
        after.append(draw(shift))
    return classify_change(before, after, RULE)


def test_without_a_change_at_most_one_in_a_thousand_is_called_worse(timed):
    source = random.Random(1)
    changes = [evaluate_random(source, timed, 0.015, 0.0, 1) for _ in range(1500)]
    assert gate(changes) == FINE


def test_stated_visible_slowdown_is_found_in_95_percent_of_trials(timed):
    source = random.Random(2)
    changes = [evaluate_random(source, timed, 0.012, -math.log(1.10), 3) for _ in range(300)]
    assert sum(change.kind == "slower" for change in changes) >= 0.95 * 300
    unchanged = [evaluate_random(source, timed, 0.005, 0.0, 3) for _ in range(50)]
    assert all(change.speed.visible < 1.10 for change in unchanged)


@pytest.mark.parametrize("settings", [{"factor": 0.9}, {"factor": math.nan}, {"most": 1}])
def test_a_rule_that_makes_no_sense_is_refused(settings):
    with pytest.raises(ValueError, match=r"factor|at least two"):
        GateRule(**settings)


def test_a_comparison_needs_both_sides(timed):
    with pytest.raises(ValueError, match="a stored and a new evaluation"):
        classify_change([timed(1.0)], [], RULE)


def test_the_gate_is_closed_only_by_what_got_worse(subject_of):
    def changes(*kinds, **more):
        return [Change(subject=subject_of(), kind=kind, before=Outcome.CORRECT, **more) for kind in kinds]

    assert gate(changes("same", "faster", "fixed", "not_comparable", "unreliable")) == FINE
    assert gate(changes("same", "slower")) == WORSE
    assert gate(changes("not_comparable", "broken")) == WORSE
    assert gate(changes("not_comparable", "unreliable")) == NOTHING_COMPARABLE
    assert gate([]) == NOTHING_COMPARABLE
    assert gate(changes("same") + changes("not_comparable", harness_failed=True)) == HARNESS_FAILED


@pytest.mark.parametrize(("then", "now", "kind"), [("call", "device", "not_comparable"), ("bound", "bound", "same")])
def test_times_of_different_clocks_are_not_compared(timed, then, now, kind):
    one = timed(2.0)
    before, after = ([replace(one, timing=replace(one.timing, clock=clock))] * 2 for clock in (then, now))
    change = classify_change(before, after, RULE)
    assert change.kind == kind
    assert change.reason == ("" if kind == "same" else f"timed by another clock: {then} -> {now}")
    assert change.speed is None or change.speed.clock == now
