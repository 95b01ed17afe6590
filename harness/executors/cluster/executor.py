"""Evaluates on the devices of a Ray cluster.

Each device has an actor, which runs one evaluation at a time; builds are tasks on any node. The actors end with this
process.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self

from harness.domain import EMULATED, DeviceError, Evaluation, HarnessError, Language, UsageError
from harness.executors.cluster.connection import ClusterSettings, connect
from harness.executors.cluster.jobs import ClusterJob, conclude_losses
from harness.executors.cluster.nodes import KINDS, ClusterDevice, ClusterNode, Nodes, describe_error
from harness.executors.cluster.remote import Broken, Built, OpenExecutor, build_ahead
from harness.executors.executor import DeviceFacts, DeviceStatus, ExecutorStatus
from harness.executors.local import LocalExecutor
from harness.executors.placement import JobQueue, share_out
from harness.executors.settings import LocalSettings
from harness.executors.tasks import Task

SUBMITTED_PER_DEVICE = 3
POLL_S = 0.05
LOOK_EVERY_S = 1.0  # at the nodes of the cluster
OPEN_S = 900.0  # for the first device
WITHOUT_DEVICES_S = 300.0  # for a new node, after the last device was lost


class RayExecutor:
    """A context manager that ends every started actor. For `builds_ahead` see `LocalExecutor`; `open_executor` opens an
    actor's executor.
    """

    def __init__(
        self,
        cluster: ClusterSettings,
        settings: LocalSettings,
        open_executor: OpenExecutor = LocalExecutor,
        *,
        builds_ahead: bool = False,
    ) -> None:
        if settings.device not in ("auto", *KINDS):
            raise UsageError(f"--executor ray takes --device auto, {', '.join(KINDS)}, not {settings.device!r}")
        self._settings, self._builds_ahead = settings, builds_ahead
        self._ray, self._owns_connection = connect(cluster.address)
        self._changed = threading.Condition()
        self._pending: dict[Any, Callable[[Any], None]] = {}
        self._nodes = Nodes(
            ray=self._ray, cluster=cluster, settings=settings, open_executor=open_executor,
            expect=self._pending.__setitem__,
        )  # fmt: skip
        self._build = self._ray.remote(num_cpus=1, max_retries=0)(build_ahead)
        self._jobs: set[ClusterJob] = set()  # unfinished
        self._ready: dict[str, JobQueue[ClusterJob]] = defaultdict(JobQueue)  # by kind of device
        self._to_build: deque[ClusterJob] = deque()
        self._build_counts: Counter[str] = Counter()
        self._asked: set[Language] = set()
        self._obstacles: dict[Language, HarnessError] = {}
        self._facts: dict[Language, tuple[str, tuple[DeviceFacts, ...]]] = {}  # kind and devices
        self._finished: deque[Callable[[], None]] = deque()  # to call without the lock
        self._failure = ""
        self._empty_since_s: float | None = None
        self._thread = threading.Thread(target=self._serve, name="cluster", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def capacity(self) -> int:
        with self._changed:
            return SUBMITTED_PER_DEVICE * max(len(self._nodes.devices), 1)

    def devices(self, language: Language) -> tuple[DeviceFacts, ...]:
        """The first call waits for the devices of all nodes. Raises UsageError, and DeviceError without devices."""
        return self._await_facts(language)[1]

    def submit(self, task: Task) -> Future[Evaluation]:
        kind, facts = self._await_facts(task.subject.language)
        if not facts:
            raise UsageError(f"--device {self._settings.device} does not evaluate language {task.subject.language}")
        job = ClusterJob(task=task.on_device(facts[0].name), kind=kind)
        with self._changed:
            self._require_open()
            is_alone = not self._jobs and not self._builds_ahead
            self._jobs.add(job)
            if job.wants_build and kind != EMULATED and not is_alone:
                self._to_build.append(job)
            else:
                self._ready[kind].put(job)
        job.future.add_done_callback(lambda _: self._forget(job))
        return job.future

    def status(self) -> ExecutorStatus:
        with self._changed:
            devices = list(self._nodes.devices.values())
            waiting = len(self._jobs) - sum(device.job is not None for device in devices)
            described = tuple(
                DeviceStatus(
                    name=one.name, waiting=share, running=int(one.job is not None), done=self._nodes.done[one.name]
                )
                for one, share in zip(devices, share_out(waiting, len(devices)), strict=True)
            )
            return ExecutorStatus(
                building=self._nodes.count_builds(),
                builds=dict(self._build_counts),
                devices=described,
                lost=tuple(self._nodes.out_of_service.values()),
                failure=self._failure,
            )

    def close(self) -> None:
        self._fail("the executor was closed")
        self._thread.join()
        with suppress(self._ray.exceptions.RayError, RuntimeError):  # the cluster may be gone
            self._nodes.close()
        if self._owns_connection:
            self._owns_connection = False
            self._ray.shutdown()

    def _await_facts(self, language: Language) -> tuple[str, tuple[DeviceFacts, ...]]:
        began_s = time.monotonic()
        with self._changed:
            self._obstacles.pop(language, None)
            while language not in self._facts:
                self._asked.add(language)
                self._require_open()
                if language in self._obstacles:
                    raise self._obstacles[language]
                self._changed.wait(POLL_S)
                if time.monotonic() - began_s > OPEN_S:
                    raise DeviceError(f"no device of the cluster was ready within {OPEN_S:g} s: is it in use?")
            return self._facts[language]

    def _forget(self, job: ClusterJob) -> None:
        with self._changed:
            self._jobs.discard(job)

    def _require_open(self) -> None:
        if self._failure:
            raise DeviceError(self._failure)

    def _fail(self, message: str) -> None:
        """Make every unfinished evaluation raise."""
        with self._changed:
            self._failure = self._failure or message
            left = list(self._jobs)
            self._changed.notify_all()
        for job in left:
            job.fail(DeviceError(self._failure))

    # The thread that follows the cluster runs the rest.

    def _serve(self) -> None:
        looked_s = 0.0
        try:
            while not self._failure:
                with self._changed:
                    if time.monotonic() - looked_s > LOOK_EVERY_S:
                        self._nodes.look()
                        looked_s = time.monotonic()
                        self._require_devices()
                    for language in list(self._asked):
                        self._settle(language)
                    self._dispatch()
                self._handle_ready()
        except Exception as error:  # noqa: BLE001 - all who wait must learn of it
            self._fail(str(error) if isinstance(error, HarnessError) else f"the cluster: {describe_error(error)}")

    def _settle(self, language: Language) -> None:
        try:
            found = self._find_facts(language)
        except (DeviceError, UsageError) as error:
            self._obstacles[language] = error
        else:
            if found is None:
                return
            self._facts[language] = found
        self._asked.discard(language)
        self._changed.notify_all()

    def _find_facts(self, language: Language) -> tuple[str, tuple[DeviceFacts, ...]] | None:
        """Return None if not known yet. Raises UsageError, and DeviceError without a device."""
        nodes = self._nodes
        if nodes.is_probing:
            return None
        kind = nodes.choose_kind(language)
        if kind is None:
            return "", ()
        nodes.want(kind, language)
        if nodes.is_opening(kind):
            return None
        opened = [one.opened for one in nodes.list_open(kind) if one.opened]
        if not opened:
            raise nodes.explain_lack(kind)
        nodes.choose_chip(kind)
        return kind, tuple({one.facts.name: one.facts for one in opened}.values())

    def _require_devices(self) -> None:
        """Raises DeviceError if jobs have waited too long."""
        if not self._jobs or self._nodes.devices:
            self._empty_since_s = None
            return
        self._empty_since_s = self._empty_since_s or time.monotonic()
        waited_s = time.monotonic() - self._empty_since_s
        if self._nodes.has_only_broken or waited_s > WITHOUT_DEVICES_S:
            reasons = "; ".join(self._nodes.out_of_service.values())
            raise DeviceError(reasons or f"the cluster has had no device for {waited_s:.0f} s")

    def _dispatch(self) -> None:
        while self._to_build and (node := self._nodes.choose_builder()) is not None:
            self._start_build(self._to_build.popleft(), node)
        for device in self._nodes.devices.values():
            if device.is_idle and (job := self._ready[device.kind].take(device.name)) is not None:
                device.job = job
                reference = device.actor.evaluate.remote(job.task, job.built or Built())
                self._pending[reference] = partial(self._end_evaluation, device)

    def _start_build(self, job: ClusterJob, node: ClusterNode) -> None:
        opened = next((one.opened for one in self._nodes.list_open(job.kind) if one.opened), None)
        architecture = self._settings.architecture or (opened.architecture if opened else None)
        settings = replace(self._settings, architecture=architecture)
        node.builds += 1
        build = self._build.options(scheduling_strategy=self._nodes.on_node(node.id))
        self._pending[build.remote(settings, job.task)] = lambda ready: self._end_build(job, node, ready)

    def _end_build(self, job: ClusterJob, node: ClusterNode, ready: Any) -> None:
        """If a builder fails, the device's node builds."""
        node.builds -= 1
        try:
            job.built = self._ray.get(ready)
            self._build_counts += Counter(build.status for build in job.built.ahead.builds.values())
        except self._ray.exceptions.RayError:
            job.built = Built()
        self._ready[job.kind].put(job)

    def _end_evaluation(self, device: ClusterDevice, ready: Any) -> None:
        job, device.job = device.job, None
        assert job is not None
        try:
            answer: Evaluation | Broken = self._ray.get(ready)
        except self._ray.exceptions.RayActorError as error:
            self._lose(device, job, describe_error(error))
        except Exception as error:  # noqa: BLE001 - one task must not end the others
            failure = HarnessError(f"{device.name}: {describe_error(error)}")
            self._finished.append(lambda: job.fail(failure))
        else:
            if isinstance(answer, Broken):
                self._lose(device, job, answer.reason, for_good=True)
            else:
                self._nodes.note_success(device)
                self._finished.append(lambda: job.finish(answer))

    def _lose(self, device: ClusterDevice, job: ClusterJob, reason: str, *, for_good: bool = False) -> None:
        """Evaluate the job elsewhere, unless it may be the cause of the loss. No program causes a broken device."""
        if device.node.is_draining or for_good:
            job.moves.append(f"{device.name}: {reason}")
        else:
            job.losses.append(f"{device.name}: {reason}")
        self._nodes.lose(device, reason, for_good=for_good)
        self._ready[job.kind].forget(device.name)
        verdict = conclude_losses(job)
        if verdict is None:
            self._ready[job.kind].put(job)
        else:
            self._finished.append(lambda: job.finish(verdict))

    def _handle_ready(self) -> None:
        waiting = list(self._pending)
        if not waiting:
            time.sleep(POLL_S)
            return
        self._ray.wait(waiting, num_returns=1, timeout=POLL_S)
        ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        with self._changed:
            for reference in ready:
                self._pending.pop(reference)(reference)
            self._dispatch()
        while self._finished:
            self._finished.popleft()()
