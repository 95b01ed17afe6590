import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.side_by_side import compare_rows, shorten_message
from harness.store.columns import ResultRow


def row(outcome="correct", speedup=None, width=1.02, **fields):
    base = dict.fromkeys(ResultRow._fields) | {
        "id": 1, "run": "a", "sample": 0, "turn": 0, "suite": "core", "problem": "add", "language": "cpp",
        "device": "cpu", "hardware": "Chip", "workload": "full", "baseline": "eager", "outcome": outcome,
        "speedup": speedup, "speedup_low": speedup and speedup / width, "speedup_high": speedup and speedup * width,
        "candidate": "c", "message": "", "dtype": "",
    }  # fmt: skip
    return ResultRow(**base | fields)


def side(speedups, **fields):
    return [row("correct" if speedup else "wrong_value", speedup, problem=f"p{n}", **fields) for n, speedup in speedups]


def only(comparison):
    (group,) = comparison.groups
    return group


def test_unsolved_problem_is_lost_and_newly_solved_one_is_won():
    group = only(compare_rows(side([(1, 2.0), (2, None), (3, 2.0)]), side([(1, None), (2, 2.0), (3, 2.0)])))
    assert [pair.problem for pair in group.flips("lost")] == ["p1"]
    assert [pair.problem for pair in group.flips("won")] == ["p2"]


def test_a_problem_with_several_samples_flips_only_when_none_is_left_correct():
    before = [row("correct", sample=0), row("wrong_value", sample=1)]
    assert only(compare_rows(before, [row("wrong_value", sample=0), row("correct", sample=1)])).pairs[0].flip is None
    assert only(compare_rows(before, [row("wrong_value", sample=n) for n in range(2)])).pairs[0].flip == "lost"


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "x"},
        {"language": "cuda"},
        {"workload": "small"},
        {"baseline": "compile"},
        {"device": "cuda:0"},
        {"hardware": "Y"},
    ],
)
def test_incomparable_samples_are_not_paired(change):
    comparison = compare_rows([row()], [row(**change)])
    assert not comparison.groups
    assert (len(comparison.only_before), len(comparison.only_after)) == (1, 1)


def test_devices_of_one_kind_with_the_same_chip_are_paired():
    assert only(compare_rows([row(device="cuda:0")], [row(device="cuda:1")])).group.device == "cuda"


def test_problems_of_another_version_are_named_and_not_compared():
    comparison = compare_rows([row()], [row(id=2)], {1: "v1", 2: "v2"})
    assert not comparison.groups
    assert [name for _, name in comparison.other_version] == ["add"]


def test_sample_without_a_device_counts_on_that_of_its_side():
    before = [row(problem="add"), row(problem="mul")]
    after = [row(problem="add"), row("no_code", problem="mul", device="none")]
    assert [pair.problem for pair in only(compare_rows(before, after)).flips("lost")] == ["mul"]


def test_the_last_turn_and_the_latest_evaluation_count():
    after = [row("wrong_value", turn=0), row("correct", turn=1), row("wrong_value", turn=0)]
    assert only(compare_rows([row("correct")], after)).pairs[0].flip is None


@pytest.mark.parametrize("outcome", ["not_run", "harness_error"])
def test_outcomes_that_do_not_rate_the_model_are_excluded(outcome):
    comparison = compare_rows([row()], [row(outcome)])
    assert not comparison.groups
    assert len(comparison.only_before) == 1


def test_single_samples_are_distinguished_by_their_intervals():
    narrow = only(compare_rows([row("correct", 2.0)], [row("correct", 2.4)])).pairs[0].speed
    wide = only(compare_rows([row("correct", 2.0, width=1.5)], [row("correct", 2.4, width=1.5)])).pairs[0].speed
    assert narrow.is_significant
    assert narrow.ratio == pytest.approx(1.2)
    assert narrow.low < 1.2 < narrow.high
    assert not wide.is_significant


def test_samples_that_scatter_widely_need_a_larger_difference():
    def sides(spread):
        return (
            [row("correct", speedup * math.exp(spread * (n - 2)), sample=n) for n in range(5)] for speedup in (2.0, 2.4)
        )

    assert only(compare_rows(*sides(0.01))).pairs[0].speed.is_significant
    assert not only(compare_rows(*sides(0.5))).pairs[0].speed.is_significant


def test_an_interval_of_no_width_gives_no_error():
    same, other = ([row("correct", speedup, width=1.0)] for speedup in (2.0, 3.0))
    assert only(compare_rows(same, same)).pairs[0].speed.p == 1.0
    assert only(compare_rows(same, other)).pairs[0].speed.p == 0.0


def test_false_discoveries_are_controlled_over_the_problems():
    source = random.Random(0)
    noise = 1.02 ** (1 / 1.96)

    def draw(shifted):
        return [(n, 2.0 * noise ** source.gauss(0, 1) * (1.5 if shifted and n < 5 else 1.0)) for n in range(200)]

    group = only(compare_rows(side(draw(False)), side(draw(True))))
    found = {pair.problem for pair in group.changed_speed()}
    assert {f"p{n}" for n in range(5)} <= found
    assert len(found) <= 7, "at a level of 5 % each, ten of the 195 others would be called changed"


def test_over_problems_the_mean_is_tested_by_ranks():
    source = random.Random(1)
    before = [(n, math.exp(source.gauss(0, 0.5))) for n in range(30)]
    better = [(n, speedup * math.exp(source.gauss(0.1, 0.05))) for n, speedup in before]
    speed = only(compare_rows(side(before), side(better))).speed
    assert speed.p < 0.001
    assert speed.low < math.exp(0.1) < speed.high
    assert only(compare_rows(side(before), side(before))).speed.p == 1.0


def test_one_timed_problem_gives_a_ratio_without_a_test():
    speed = only(compare_rows([row("correct", 2.0)], [row("correct", 3.0)])).speed
    assert (speed.ratio, speed.p, speed.low) == (pytest.approx(1.5), 1.0, 0.0)


def test_correctness_is_tested_by_signs():
    group = only(compare_rows(side([(n, None) for n in range(8)]), side([(n, 2.0) for n in range(8)])))
    assert (group.correct_before, group.correct_after) == (0.0, 1.0)
    assert group.correct_p == pytest.approx(2 * 0.5**8)


def test_outcomes_and_messages_are_counted_over_what_is_paired():
    before = [row("build_error", message="a.cu(12): error: no x1"), row("timeout", problem="alone")]
    after = [row("wrong_value", message="off by 0.25\nand more")]
    comparison = compare_rows(before, after)
    assert comparison.outcomes == {"build_error": (1, 0), "wrong_value": (0, 1)}
    assert set(comparison.messages) == {("build_error: a.cu(#): error: no x#", 1, 0), ("wrong_value: off by #", 0, 1)}


def test_samples_are_paired_one_by_one_where_they_are_the_same_candidates():
    before = [row("correct", sample=n) for n in range(2)]
    after = [row("correct" if n else "timeout", sample=n) for n in range(2)]
    assert [pair.name for pair in only(compare_rows(before, after, by_sample=True)).flips("lost")] == ["a/add/0"]


SIDES = st.lists(
    st.builds(
        row, st.sampled_from(["correct", "wrong_value", "not_run", "no_code"]), st.none() | st.floats(0.01, 100),
        problem=st.sampled_from("abc"), sample=st.integers(0, 3), device=st.sampled_from(["cpu", "none", "cuda:0"]),
    ),
    max_size=12,
)  # fmt: skip


@given(SIDES, SIDES)
@pytest.mark.slow
def test_turned_around_everything_is_mirrored(before, after):
    there, back = compare_rows(before, after), compare_rows(after, before)
    assert [group.group for group in there.groups] == [group.group for group in back.groups]
    for one, other in zip(there.groups, back.groups, strict=True):
        assert [pair.name for pair in one.flips("lost")] == [pair.name for pair in other.flips("won")]
        assert one.correct_p == pytest.approx(other.correct_p)
        if one.speed and other.speed:
            assert one.speed.ratio == pytest.approx(1 / other.speed.ratio)
    assert there.outcomes == {name: (was, now) for name, (now, was) in back.outcomes.items()}


def test_numbers_and_further_lines_of_a_message_do_not_count():
    assert shorten_message("  x 0xdeadbeef at 1.5e-3\nmore") == "x # at #"
    assert len(shorten_message("y" * 1000)) == 100


def test_speeds_by_different_clocks_are_counted_and_not_compared():
    before = side([(0, 2.0), (1, 2.0)], clock="device")
    after = side([(0, 2.0)], clock="device") + side([(1, 2.0)], clock="bound")
    (group,) = compare_rows(before, after).groups
    assert (group.timed, group.other_clock) == (1, 1)
    assert [pair.speed and pair.speed.clock for pair in group.pairs] == ["device", None]
