import json

import pytest

from harness.domain import Block, Conditions, StoreError, Timing
from harness.evaluation.timing.system_conditions import (
    MARGIN,
    PAIRS,
    SLOW_CALL_US,
    NoiseFloors,
    NoiseKey,
    add_to_record,
    find_device_floor,
    read_record,
)

KEY = NoiseKey(problem_digest="abc", workload="full", baseline="eager", device_type="cpu", machine="a chip")


def make_timing(speedup, *, baseline_us=1000.0, disturbed="", foreign_load=0.0):
    block = Block(
        calls=1, baseline_reported_us=1.0, candidate_reported_us=1.0,
        baseline_evaluator_us=1.0, candidate_evaluator_us=1.0, baseline_copy_us=1.0, candidate_copy_us=1.0,
    )  # fmt: skip
    return Timing(
        baseline="eager", baseline_us=baseline_us, candidate_us=1.0, speedup=speedup, speedup_low=speedup,
        speedup_high=speedup, verdict="tie", blocks=(block,), overhead_us=1.0,
        conditions=Conditions(disturbed=disturbed, foreign_load=foreign_load),
    )  # fmt: skip


class Pairs:
    """Gives these speedups, one a pair, and counts how often it was asked."""

    def __init__(self, *speedups, **kwargs):
        self.left = list(speedups)
        self.asked = 0
        self.kwargs = kwargs

    def __call__(self):
        self.asked += 1
        return make_timing(self.left.pop(0), **self.kwargs)


def test_the_floor_lies_beyond_the_largest_distance_seen_in_either_direction(tmp_path):
    floor = NoiseFloors(tmp_path).find(KEY, Pairs(1.01, 1 / 1.04, 0.99))
    assert floor == pytest.approx(1.04**MARGIN - 1)


def test_a_problem_is_measured_once_and_remembered_by_the_next_process(tmp_path):
    first, second = Pairs(1.02, 1.0, 1.0), Pairs()
    found = NoiseFloors(tmp_path).find(KEY, first)
    assert NoiseFloors(tmp_path).find(KEY, second) == found
    assert (first.asked, second.asked) == (PAIRS, 0)


def test_another_problem_or_machine_is_measured_again(tmp_path):
    floors = NoiseFloors(tmp_path)
    floors.find(KEY, Pairs(1.02, 1.0, 1.0))
    for changed in ("problem_digest", "workload", "baseline", "machine"):
        fields = {name: getattr(KEY, name) for name in NoiseKey.__dataclass_fields__} | {changed: "other"}
        pairs = Pairs(1.1, 1.0, 1.0)
        assert floors.find(NoiseKey(**fields), pairs) > 0.1
        assert pairs.asked == PAIRS


def test_noise_floor_under_allowed_load_is_cached_in_this_process_only(tmp_path):
    floors, again = NoiseFloors(tmp_path), Pairs(1.02, 1.0, 1.0)
    loaded = floors.find(KEY, Pairs(1.5, 1.0, 1.0, foreign_load=1.5))
    assert floors.find(KEY, Pairs()) == loaded > 0.5
    assert NoiseFloors(tmp_path).find(KEY, again) < 0.05
    assert again.asked == PAIRS


def test_noise_floor_of_a_disturbed_machine_is_not_cached(tmp_path):
    floors = NoiseFloors(tmp_path)
    assert floors.find(KEY, Pairs(1.5, 1.0, 1.0, disturbed="others were busy")) > 0.5
    assert floors.find(KEY, Pairs(1.0, 1.0, 1.0)) < 0.01


def test_long_calls_are_measured_with_one_pair(tmp_path):
    pairs = Pairs(1.01, baseline_us=2 * SLOW_CALL_US)
    NoiseFloors(tmp_path).find(KEY, pairs)
    assert pairs.asked == 1


def test_without_a_folder_floors_live_as_long_as_the_object():
    floors = NoiseFloors(None)
    found = floors.find(KEY, Pairs(1.02, 1.0, 1.0))
    assert floors.find(KEY, Pairs()) == found


def test_shorter_calls_have_a_higher_device_floor():
    assert find_device_floor("cpu", 100.0) > find_device_floor("cpu", 10_000.0) > 0.0


def test_a_damaged_file_is_an_error_that_names_it(tmp_path):
    (tmp_path / "noise.json").write_text("{")
    with pytest.raises(StoreError, match=r"noise\.json is damaged"):
        NoiseFloors(tmp_path).find(KEY, Pairs())


def test_records_of_two_writers_are_both_kept(tmp_path):
    path = tmp_path / "deep" / "facts.json"
    add_to_record(path, {"one": 1})
    add_to_record(path, {"two": 2, "one": 3})
    assert read_record(path) == {"one": 3, "two": 2} == json.loads(path.read_text())
