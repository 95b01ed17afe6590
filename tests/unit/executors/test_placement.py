from dataclasses import replace

import pytest
from test_device_pool import make_task

from harness.domain import DeviceError
from harness.executors.device_pool import (
    MOST_IN_A_ROW,
    MOST_OF_A_PROBLEM,
    MOST_UPCOMING,
    Job,
    JobQueue,
    divide_cores,
    share_out,
)


def test_device_prefers_its_problems_and_takes_others_when_idle():
    queue = JobQueue()
    for sample, problem in enumerate(("p", "q", "p", "q")):
        queue.put(Job(task=make_task(sample, problem)))
    taken = [queue.take(device).task.subject.sample for device in ("one", "two", "one", "one")]
    assert taken == [0, 1, 2, 3]
    assert queue.take("one") is None


def test_jobs_of_an_owner_follow_each_other_but_not_for_ever():
    queue = JobQueue()
    for sample in range(2 * MOST_IN_A_ROW + 4):
        queue.put(Job(task=replace(make_task(sample), owner=("alice", "bob")[sample % 2])))
    owners = [queue.take("one").task.owner for _ in range(2 * MOST_IN_A_ROW + 4)]
    assert owners == ["alice"] * MOST_IN_A_ROW + ["bob"] * MOST_IN_A_ROW + ["alice"] * 2 + ["bob"] * 2


def take_all(queue, device="one"):
    return [job.task.subject.sample for job in iter(lambda: queue.take(device), None)]


def test_candidates_of_the_last_problem_of_a_device_are_next():
    queue = JobQueue()
    for sample, problem in enumerate("pqrpqrp"):
        queue.put(Job(task=make_task(sample, problem)))
    assert take_all(queue) == [0, 3, 6, 1, 4, 2, 5]


def test_problem_with_many_candidates_precedes_others_not_for_ever():
    queue = JobQueue()
    for sample in range(MOST_OF_A_PROBLEM + 3):
        queue.put(Job(task=make_task(sample, "q" if sample == 1 else "p")))
    assert take_all(queue).index(1) == MOST_OF_A_PROBLEM


def test_problem_of_the_last_owner_precedes_no_other_owner_for_ever():
    queue = JobQueue()
    for sample, owner in enumerate(["alice"] * 2 + ["bob"] + ["alice"] * MOST_IN_A_ROW):
        queue.put(Job(task=replace(make_task(sample, "q" if sample == 1 else "p"), owner=owner)))
    order = take_all(queue)
    assert order.index(1) < order.index(2) <= MOST_IN_A_ROW + 1


def test_device_that_takes_over_problems_keeps_to_one_of_them():
    queue = JobQueue()
    for sample, problem in enumerate("pqpqpq"):
        queue.put(Job(task=make_task(sample, problem)))
    assert [queue.take("one").task.subject.sample for _ in range(4)] == [0, 2, 4, 1]
    queue.put(Job(task=make_task(6, "p")))
    assert take_all(queue, "two") == [3, 5, 6]


def test_prepared_candidates_are_first_and_no_device_waits_for_others():
    queue = JobQueue()
    for sample, is_prepared in enumerate((False, True, False, True)):
        queue.put(Job(task=make_task(sample), is_prepared=is_prepared))
    assert take_all(queue) == [1, 3, 0, 2]


def test_only_tasks_of_a_client_are_announced_to_its_process():
    queue = JobQueue()
    for sample, owner in enumerate(("", "alice", "bob", "alice", *["bob"] * MOST_UPCOMING)):
        queue.put(Job(task=replace(make_task(sample), owner=owner)))
    assert [task.subject.sample for task in queue.list_upcoming("alice")] == [1, 3]
    assert len(queue.list_upcoming("bob")) == MOST_UPCOMING
    assert queue.list_upcoming("") == ()


def test_a_cancelled_evaluation_is_not_started():
    queue, job = JobQueue(), Job(task=make_task(0))
    queue.put(job)
    job.future.cancel()
    assert queue.take("one") is None


def test_first_submitted_evaluation_runs_first_even_if_built_later():
    queue, jobs = JobQueue(), [Job(task=make_task(sample)) for sample in range(4)]
    for index in (2, 0, 3, 1):
        queue.put(jobs[index])
    assert [queue.take("one") for _ in jobs] == jobs


def test_job_of_a_lost_device_is_next_and_stays_running():
    queue, first = JobQueue(), Job(task=make_task(0))
    for job in (first, Job(task=make_task(1))):
        queue.put(job)
    queue.put(queue.take("one"))
    queue.forget("one")
    assert queue.take("two") is first
    assert not first.future.cancel()


def test_an_evaluation_whose_build_failed_is_not_started():
    queue, job = JobQueue(), Job(task=make_task(0))
    job.fail(DeviceError("the executor was closed"))
    queue.put(job)
    assert queue.take("one") is None


@pytest.mark.parametrize(("count", "shares"), [(0, [0, 0, 0]), (4, [2, 1, 1])])
def test_devices_share_what_waits(count, shares):
    assert share_out(count, 3) == shares


@pytest.mark.parametrize(("cores", "gpus", "share", "builds"), [(16, 1, 8, 8), (16, 2, 4, 8), (128, 8, 8, 64)])
def test_each_gpu_has_cores_that_no_build_takes(cores, gpus, share, builds):
    plan = divide_cores(range(cores), gpus, separate=True)
    assert [len(own) for own in plan.devices] == [share] * gpus
    assert len(plan.builds) == builds
    assert sum(map(len, plan.devices)) + builds == len(plan.builds.union(*plan.devices)) == cores
    assert not plan.shared


@pytest.mark.parametrize(("cores", "gpus", "separate"), [(2, 1, True), (16, 4, True), (64, 1, False)])
def test_builds_and_timing_share_cores_on_small_or_cpu_machines(cores, gpus, separate):
    plan = divide_cores(range(cores), gpus, separate=separate)
    assert plan.shared
    assert set(plan.devices) == {plan.builds} == {frozenset(range(cores))}
