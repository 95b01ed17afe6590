import pytest

from harness.executors.placement import SPILL, Placement, divide_cores

GPUS = ("cuda:0", "cuda:1")


def test_all_candidates_of_a_problem_go_to_one_gpu_and_problems_to_the_idlest():
    placement = Placement(GPUS)
    placed = [placement.choose(problem) for problem in ("a", "b", "a", "b", "a", "c")]
    assert placed == ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0", "cuda:1"]


def test_a_single_problem_does_not_leave_the_other_gpus_idle():
    placement = Placement(GPUS)
    placed = [placement.choose("a") for _ in range(4 * SPILL)]
    assert placed[:SPILL] == ["cuda:0"] * SPILL
    assert placed[SPILL] == "cuda:1"
    assert abs(placement.load("cuda:0") - placement.load("cuda:1")) <= 1


def test_ended_evaluations_make_room():
    placement = Placement(GPUS)
    for problem in ("a", "b", "b"):
        placement.choose(problem)
    for _ in range(2):
        placement.finish("cuda:1")
    assert placement.choose("c") == "cuda:1"


def test_what_a_lost_gpu_had_goes_to_the_others_until_none_is_left():
    placement = Placement(GPUS)
    assert placement.choose("a") == "cuda:0"
    placement.remove("cuda:0")
    placement.finish("cuda:0")
    assert placement.choose("a") == "cuda:1"
    placement.remove("cuda:1")
    with pytest.raises(LookupError):
        placement.choose("a")


@pytest.mark.parametrize(("cores", "gpus", "share", "builds"), [(16, 1, 8, 8), (16, 2, 4, 8), (128, 8, 8, 64)])
def test_each_gpu_has_cores_that_no_build_takes(cores, gpus, share, builds):
    plan = divide_cores(range(cores), gpus, separate=True)
    assert [len(own) for own in plan.devices] == [share] * gpus
    assert len(plan.builds) == builds
    assert sum(map(len, plan.devices)) + builds == len(plan.builds.union(*plan.devices)) == cores
    assert not plan.shared


@pytest.mark.parametrize(("cores", "gpus", "separate"), [(2, 1, True), (16, 4, True), (64, 1, False)])
def test_with_few_cores_or_on_a_cpu_device_builds_and_timing_share_all(cores, gpus, separate):
    plan = divide_cores(range(cores), gpus, separate=separate)
    assert plan.shared
    assert set(plan.devices) == {plan.builds} == {frozenset(range(cores))}
