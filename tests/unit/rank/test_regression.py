import pytest

from harness.rank.regression import compare_evaluations, gate


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
        (("harness_error", None), ("correct", 2.0), "not_comparable"),
    ],
)
def test_each_pair_of_verdicts_gives_its_kind_of_change(evaluation_of, before, after, kind):
    assert compare_evaluations(evaluation_of(*before), evaluation_of(*after)).kind == kind


def test_a_larger_speedup_whose_interval_overlaps_is_no_change(evaluation_of):
    before, after = evaluation_of("correct", 2.0, spread=0.5), evaluation_of("correct", 2.8, spread=0.5)
    assert compare_evaluations(before, after).kind == "same"
    assert compare_evaluations(after, before).kind == "same"


def test_a_certain_change_within_the_factor_is_no_change(evaluation_of):
    before, after = evaluation_of("correct", 2.0, spread=0.01), evaluation_of("correct", 2.08, spread=0.01)
    assert compare_evaluations(before, after).kind == "same"
    assert compare_evaluations(before, after, factor=1.02).kind == "faster"
    assert compare_evaluations(after, before, factor=1.02).kind == "slower"


@pytest.mark.parametrize("verdict", ["unreliable", "unconfirmed"])
def test_a_time_that_was_not_confirmed_is_not_compared(evaluation_of, verdict):
    before, after = evaluation_of("correct", 9.0), evaluation_of("correct", 1.0, verdict=verdict)
    assert compare_evaluations(before, after).kind == "unreliable"
    assert compare_evaluations(after, after).kind == "unreliable"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"problem_digest": "2" * 16}, "other problem version"),
        ({"candidate_digest": "d" * 16}, "other candidate"),
        ({"workload": "small"}, "other workload"),
        ({"baseline": "compile"}, "other baseline"),
        ({"device": "emulated"}, "other device: cpu -> emulated"),
        ({"extra": {"environment": (("cpu", "Another CPU"),)}}, "other hardware: Example CPU 9000 -> Another CPU"),
    ],
)
def test_evaluations_of_different_things_are_not_compared(evaluation_of, change, reason):
    compared = compare_evaluations(evaluation_of("correct", 2.0), evaluation_of("correct", 2.0, **change))
    assert compared.kind == "not_comparable"
    assert reason in compared.reason


def test_two_devices_with_the_same_chip_are_compared(evaluation_of):
    before, after = (evaluation_of("correct", 2.0, device=device) for device in ("cuda:0", "cuda:1"))
    assert compare_evaluations(before, after).kind == "same"


def test_a_candidate_that_no_longer_reaches_its_device_is_broken(evaluation_of):
    change = compare_evaluations(evaluation_of("correct", 2.0), evaluation_of("build_error", device="none"))
    assert (change.kind, change.reason) == ("broken", "correct -> build_error")


def test_the_ratio_is_new_over_old(evaluation_of):
    change = compare_evaluations(evaluation_of("correct", 2.0), evaluation_of("correct", 3.0))
    assert (change.before_speedup, change.after_speedup, change.ratio) == (2.0, 3.0, 1.5)


def test_a_factor_below_one_is_refused(evaluation_of):
    with pytest.raises(ValueError, match="factor"):
        compare_evaluations(evaluation_of(), evaluation_of(), factor=0.9)


def test_the_gate_is_closed_only_by_what_got_worse(evaluation_of):
    fast, slow, wrong, not_run = (
        evaluation_of(*verdict) for verdict in (("correct", 3.0), ("correct", 1.0), ("wrong_value",), ("not_run",))
    )
    same, faster, fixed = (compare_evaluations(*pair) for pair in ((fast, fast), (slow, fast), (wrong, fast)))
    slower, broken = (compare_evaluations(*pair) for pair in ((fast, slow), (fast, wrong)))
    incomparable = compare_evaluations(fast, not_run)
    assert gate([same, faster, fixed, incomparable]) == 0
    assert gate([same, slower]) == 1
    assert gate([incomparable, broken]) == 1
    assert gate([incomparable]) == 4
    assert gate([]) == 4
