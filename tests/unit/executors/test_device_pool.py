"""What becomes of evaluations when a device is lost, with a device that fails as it is told to."""

import threading
from concurrent.futures import Future

import pytest
from built_evaluations import build_subject

from harness.domain import DeviceError, Evaluation, Outcome, Problem, ReferenceStopped
from harness.executors.device_pool import MOST_LOSSES, DeviceLost, DevicePool, Job
from harness.executors.executor import DeviceFacts, Task, run_tasks


class FailingDevice:
    """`losses`: sample -> how often it is still lost with that one."""

    def __init__(self, name, losses, chip="H100", held=None, *, for_good=False):
        self.facts = DeviceFacts(name=name, chip=chip)
        self.losses, self.held, self.for_good, self.closed = losses, held, for_good, False

    def evaluate(self, job):
        if self.held is not None:
            self.held.wait(10)
        sample = job.task.subject.sample
        if self.losses.get(sample, 0):
            self.losses[sample] -= 1
            raise DeviceLost("an illegal memory access was encountered", for_good=self.for_good)
        return Evaluation(subject=job.task.subject, outcome=Outcome.WRONG_VALUE)

    def close(self):
        self.closed = True


def make_task(sample, problem="p"):
    return Task(
        subject=build_subject(sample=sample, problem=problem, problem_digest=problem, language="cuda", device="none"),
        problem=Problem(name=problem, suite="s", source=problem),
        candidate=None,
    )


def explain(job):
    return Evaluation(subject=job.task.subject, outcome=Outcome.HARNESS_ERROR, message="; ".join(job.losses))


class PoolExecutor:
    """An executor of a device pool alone, whose tasks need no build."""

    def __init__(self, open_device, names=("cuda:0",), capacity=100):
        self.pool, self.capacity = DevicePool(names, open_device, explain), capacity

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.close()

    def submit(self, task) -> Future[Evaluation]:
        self.pool.announce()
        job = Job(task=task)
        self.pool.put(job)
        return job.future


def run(executor, tasks):
    found = {}
    run_tasks(executor, tasks, lambda task, evaluation: found.setdefault(task.subject.sample, evaluation))
    return found


def test_a_device_lost_once_is_opened_again_and_nothing_is_missing():
    opened, losses = [], {1: 1}

    def open_device(name):
        opened.append(FailingDevice(name, losses))
        return opened[-1]

    with PoolExecutor(open_device) as executor:
        found = run(executor, [make_task(sample) for sample in range(3)])
    assert {sample: one.outcome for sample, one in found.items()} == dict.fromkeys(range(3), "wrong_value")
    assert [device.closed for device in opened] == [True, True]
    assert executor.pool.lost == ()


def test_reference_that_stops_its_process_costs_no_device():
    class StoppedDevice(FailingDevice):
        def evaluate(self, job):
            raise ReferenceStopped("p.py: forward ends the process by SIGSEGV")

    with PoolExecutor(lambda name: StoppedDevice(name, {})) as executor:
        found = run(executor, [make_task(sample) for sample in range(MOST_LOSSES + 1)])
    assert {one.outcome for one in found.values()} == {Outcome.PROBLEM_ERROR}
    assert {one.message for one in found.values()} == {"p.py: forward ends the process by SIGSEGV"}
    assert executor.pool.lost == ()


def test_task_that_loses_two_devices_is_a_harness_error():
    losses = {0: 2}
    with PoolExecutor(lambda name: FailingDevice(name, losses)) as executor:
        found = run(executor, [make_task(sample) for sample in range(2)])
    assert (found[0].outcome, found[1].outcome) == ("harness_error", "wrong_value")
    assert found[0].message.count("illegal memory access") == 2


def test_lost_device_is_abandoned_and_others_take_its_evaluations():
    opened, held = [], {"cuda:0": threading.Event(), "cuda:1": threading.Event()}

    def open_device(name):
        if name == "cuda:0" and name in opened:
            raise DeviceError("no CUDA-capable device is detected")
        opened.append(name)
        return FailingDevice(name, dict.fromkeys(range(4), 1) if name == "cuda:0" else {}, held=held[name])

    with PoolExecutor(open_device, tuple(held)) as executor:
        futures = [executor.submit(make_task(sample, f"p{sample}")) for sample in range(4)]
        held["cuda:0"].set()
        while not executor.pool.lost:
            assert not any(future.done() for future in futures)
        held["cuda:1"].set()
        found = {sample: future.result(10) for sample, future in enumerate(futures)}
        assert [device.name for device in executor.pool.status()] == ["cuda:1"]
    assert {one.subject.device for one in found.values()} == {"cuda:1"}
    assert sorted(found) == [0, 1, 2, 3]
    assert executor.pool.lost == ("cuda:0 cannot be used: no CUDA-capable device is detected",)


def test_permanently_lost_device_is_not_reopened_and_its_task_moves():
    opened, held = [], threading.Event()

    def open_device(name):
        opened.append(name)
        if name == "cuda:0":
            return FailingDevice(name, dict.fromkeys(range(2), 9), for_good=True)
        return FailingDevice(name, {}, held=held)

    with PoolExecutor(open_device, ("cuda:0", "cuda:1")) as executor:
        futures = [executor.submit(make_task(sample, f"p{sample}")) for sample in range(2)]
        while not executor.pool.lost:
            assert not any(future.done() for future in futures)
        held.set()
        assert {future.result(10).subject.device for future in futures} == {"cuda:1"}
    assert sorted(opened) == ["cuda:0", "cuda:1"]
    assert executor.pool.lost == ("cuda:0 cannot be used: an illegal memory access was encountered",)


def test_faults_of_two_devices_are_not_charged_to_their_task():
    both_lost = threading.Event()

    def open_device(name):
        if name == "cuda:2":
            both_lost.wait(10)
            return FailingDevice(name, {})
        return FailingDevice(name, {0: 1}, for_good=True)

    with PoolExecutor(open_device, ("cuda:0", "cuda:1", "cuda:2")) as executor:
        future = executor.submit(make_task(0))
        while len(executor.pool.lost) < 2:
            assert not future.done()
        both_lost.set()
        assert future.result(10).outcome is Outcome.WRONG_VALUE


def test_a_candidate_is_charged_with_losses_of_devices_that_are_not_excused():
    """Those of a cluster: they come, and are dropped before their nodes end."""
    held, begun = threading.Event(), []

    def open_device(name):
        begun.append(name)
        return FailingDevice(name, {0: 9}, held=held if name == "drained" else None)

    pool = DevicePool(("drained",), open_device, explain, most_losses=3, can_grow=True)
    pool.announce()
    job = Job(task=make_task(0))
    pool.put(job)
    while not pool.status()[0].running:
        assert not job.future.done()
    pool.drop("drained", is_excused=True)
    held.set()
    while not pool.has_idle_jobs:
        assert not job.future.done()
    assert pool.lost == ()
    pool.add("new")
    evaluation = job.future.result(10)
    pool.close()
    assert evaluation.message.count("illegal memory access") == 3
    assert begun == ["drained", "new", "new", "new", "new"]


def test_unwanted_device_is_not_reported():
    with PoolExecutor(
        lambda name: None if name == "cuda:0" else FailingDevice(name, {}), ("cuda:0", "cuda:1")
    ) as executor:
        assert [one.name for one in executor.pool.facts()] == ["cuda:1"]
        assert executor.pool.lost == ()


def test_run_without_devices_stops_with_the_reason_and_keeps_results():
    found, begun = {}, []

    def open_device(name):
        begun.append(name)
        if len(begun) > 1:
            raise DeviceError("the GPU fell off the bus")
        return FailingDevice(name, {1: 1})

    executor = PoolExecutor(open_device, capacity=1)
    with executor, pytest.raises(DeviceError, match="cuda:0 cannot be used: the GPU fell off the bus"):
        run_tasks(
            executor,
            [make_task(sample) for sample in range(4)],
            lambda task, evaluation: found.setdefault(task.subject.sample, evaluation.outcome),
        )
    assert found == {0: "wrong_value"}


def test_a_device_that_is_lost_with_every_task_is_given_up():
    losses = dict.fromkeys(range(9), 9)
    with PoolExecutor(lambda name: FailingDevice(name, losses)) as executor:
        first, *others = [executor.submit(make_task(sample)) for sample in range(9)]
        assert first.result(10).outcome == "harness_error"
        assert all(isinstance(other.exception(10), DeviceError) for other in others)
    assert f"lost {MOST_LOSSES + 1} times" in executor.pool.lost[0]


def test_only_gpus_with_the_chip_of_the_first_are_used():
    chips = {"cuda:0": "H100", "cuda:1": "A100", "cuda:2": "H100"}
    held = threading.Event()
    with PoolExecutor(lambda name: FailingDevice(name, {}, chips[name], held), tuple(chips)) as executor:
        executor.pool.keep_one_chip()
        assert [facts.name for facts in executor.pool.facts()] == ["cuda:0", "cuda:2"]
        futures = [executor.submit(make_task(sample, f"p{sample}")) for sample in range(2)]
        assert [device.waiting + device.running for device in executor.pool.status()] == [1, 1]
        held.set()
        assert {future.result(10).subject.device for future in futures} <= {"cuda:0", "cuda:2"}


def test_two_devices_evaluate_at_once_and_say_what_waits():
    held = threading.Event()
    with PoolExecutor(lambda name: FailingDevice(name, {}, held=held), ("cuda:0", "cuda:1")) as executor:
        futures = [executor.submit(make_task(sample, f"p{sample}")) for sample in range(4)]
        while sum(device.running for device in executor.pool.status()) < 2:
            assert not any(future.done() for future in futures)
        assert [device.waiting for device in executor.pool.status()] == [1, 1]
        held.set()
        assert {future.result(10).outcome for future in futures} == {"wrong_value"}
        status = executor.pool.status()
        assert [(device.waiting, device.running) for device in status] == [(0, 0), (0, 0)]
        assert sum(device.done for device in status) == 4


def test_a_cancelled_evaluation_is_skipped():
    held = threading.Event()
    with PoolExecutor(lambda name: FailingDevice(name, {}, held=held)) as executor:
        first, second, third = [executor.submit(make_task(sample)) for sample in range(3)]
        assert second.cancel()
        held.set()
        assert (first.result(10).outcome, third.result(10).outcome) == ("wrong_value", "wrong_value")
        assert executor.pool.status()[0].done == 2


def test_waiting_tasks_raise_when_the_executor_is_closed():
    held = threading.Event()
    executor = PoolExecutor(lambda name: FailingDevice(name, {}, held=held))
    futures = [executor.submit(make_task(sample)) for sample in range(3)]
    threading.Timer(0.2, held.set).start()
    executor.pool.close()
    assert isinstance(futures[-1].exception(10), DeviceError)


def test_only_an_evaluation_without_others_may_build_on_its_device():
    held = threading.Event()
    pool = DevicePool(("cuda:0", "cuda:1"), lambda name: FailingDevice(name, {}, held=held), explain)
    job = Job(task=make_task(0))
    assert [pool.announce(), pool.announce()] == [True, False]  # announced
    pool.put(job)
    pool.put(Job(task=make_task(1)))
    assert not pool.announce()  # waiting or running
    pool.put(Job(task=make_task(2)))
    held.set()
    while pool.status()[0].done + pool.status()[1].done < 3:
        pass
    assert pool.announce()
    pool.put(Job(task=make_task(3)))
    pool.close()
