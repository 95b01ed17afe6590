"""Evaluates on this machine's devices, each with an evaluator process.

Extensions are built ahead on cores that timing does not use, and Triton kernels compiled. Builds and timing on shared
cores exclude each other.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from harness.builder.cache import default_cache_folder, find_machine_folder
from harness.builder.toolchain import probe_toolchain
from harness.domain import (
    EMULATED,
    NO_DEVICE,
    NOTHING_AHEAD,
    BuiltAhead,
    DeviceError,
    Evaluation,
    Language,
    Outcome,
    UsageError,
)
from harness.domain.build import LOCKED, PRECOMPILING
from harness.executors.device_pool import CorePlan, DevicePool, Job, divide_cores
from harness.executors.evaluator_process import Start
from harness.executors.executor import DeviceFacts, ExecutorStatus, Task
from harness.executors.locks import BUILD_TAKEN, hold_cores_to_build
from harness.executors.processes import EvaluatorProcess, OwnedDevice, choose_visible
from harness.executors.settings import LocalSettings, Setup
from harness.hardware.gpus import DEFAULT_TARGET, find_gpu_model, match_gpu_model
from harness.hardware.host import available_memory_bytes, count_cores, cpu_name, list_gpus
from harness.languages import find_devices
from harness.problems.watched_process import set_reference_limit, start_ahead
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.policy import explain_evaluator_failure, probe_isolation

if TYPE_CHECKING:
    from harness.executors.device_evaluators import DeviceEvaluators

LOG = logging.getLogger(__name__)
COMPILING_BYTES = 4 << 30  # must be free to compile a program ahead
QUEUED_PER_DEVICE = 2
CLOSE_AGAIN_S = 0.1


class LocalExecutor:
    """A context manager that ends every started process. With `builds_ahead`, several tasks will follow, some of them
    with extensions: all are built ahead, which is prepared while GPU processes start.
    """

    def __init__(self, settings: LocalSettings, *, builds_ahead: bool = False) -> None:
        self._settings = settings
        self._builds_ahead = builds_ahead
        self._jobs = settings.jobs or count_cores()
        set_reference_limit(settings.reference_timeout_s)
        self.isolation = probe_isolation(settings.isolation)
        self.toolchain = probe_toolchain(settings.architecture)
        self._lock = threading.RLock()
        # "build" of extensions takes minutes, so "compile" of JIT languages does not wait for it.
        self._threads: dict[Literal["build", "compile"], ThreadPoolExecutor] = {}
        self._names: dict[Language, tuple[str, ...]] = {}
        self._devices: dict[tuple[str, ...], DevicePool] = {}
        self._opened: list[OwnedDevice] = []
        self._processes: list[EvaluatorProcess] = []
        self._ahead: dict[str, DeviceEvaluators] = {}
        self._making_ahead = threading.Lock()
        self._building = 0
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def capacity(self) -> int:
        with self._lock:
            return self._jobs + QUEUED_PER_DEVICE * sum(map(len, set(self._names.values())))

    def devices(self, language: Language) -> tuple[DeviceFacts, ...]:
        names = self._find_names(language)
        if not names:
            return ()
        if names == (EMULATED,):
            gpu = self._settings.gpu
            target = find_gpu_model(gpu or DEFAULT_TARGET)
            return (DeviceFacts(name=EMULATED, chip=cpu_name(), emulated_gpu=target.name),)
        if names == ("cpu",):
            return (DeviceFacts(name="cpu", chip=cpu_name()),)
        return self._find_pool(names).facts()

    def submit(self, task: Task, ahead: BuiltAhead = NOTHING_AHEAD) -> Future[Evaluation]:
        """`ahead` was built elsewhere, so nothing is built here. Raises UsageError without a client's sandbox."""
        if task.owner:
            self._require_sandbox()
        job = Job(task=task, ahead=ahead)
        names = self._find_names(task.subject.language)
        with self._lock:
            if self._closed:
                raise DeviceError("the executor was closed")
            if not names:
                if task.owner:
                    raise UsageError(f"there is no device for language {task.subject.language}")
                self._build(job, NO_DEVICE)
                return job.future
        pool = self._find_pool(names)
        is_alone = pool.announce() and not self._builds_ahead
        if is_alone or ahead is not NOTHING_AHEAD:
            pool.put(job)
        elif task.builds_extensions:
            self._build(job, names[0], pool)
        else:
            if task.compiles_ahead and _kind_of(names[0]) == "cuda" and not self._plan_cores(names).shared:
                job.is_prepared = False
                self._work_ahead("compile", self._compile_now, job)
            pool.put(job)
        return job.future

    def status(self) -> ExecutorStatus:
        with self._lock:
            pools, building = list(self._devices.values()), self._building
            counts = [evaluators.build_counts for evaluators in self._ahead.values()]
            counts += [device.build_counts for device in self._opened]
            builds = sum(counts, Counter[str]())
            is_locked = builds[LOCKED] and not builds[PRECOMPILING]  # else most likely by its own builds
            waits = [*(device.waits_for for device in self._opened), BUILD_TAKEN if is_locked else ""]
        return ExecutorStatus(
            building=building,
            builds=dict(builds),
            devices=tuple(device for one in pools for device in one.status()),
            lost=tuple(why for one in pools for why in one.lost),
            failure="; ".join(why for one in pools if not one.status() for why in one.lost),
            waits_for=next(filter(None, waits), ""),
        )

    def close(self) -> None:
        with self._lock:
            self._closed = True
            threads, pools, processes = list(self._threads.values()), list(self._devices.values()), self._processes
        for one in pools:
            one.end_jobs()  # before a process ends, which would be the fault of the problem whose step it runs
        for process in processes:  # the list is replaced, never changed
            process.close()
        for one in pools:
            one.close()
        while self._building:  # a build that has just begun starts another process
            for evaluators in list(self._ahead.values()):
                evaluators.close()
            time.sleep(CLOSE_AGAIN_S)
        for some in threads:
            some.shutdown()
        for evaluators in self._ahead.values():
            evaluators.close()

    def _find_names(self, language: Language) -> tuple[str, ...]:
        with self._lock:
            if language not in self._names:
                self._names[language] = find_devices(self._settings.device, language)
            return self._names[language]

    def _find_pool(self, names: tuple[str, ...]) -> DevicePool:
        with self._lock:
            if self._closed:
                raise DeviceError("the executor was closed")
            if names in self._devices:
                return self._devices[names]
            plan = self._plan_cores(names)
            pool = DevicePool(names, lambda name: self._open_device(name, names, plan), _explain_loss)
            self._devices[names] = pool
            if self._builds_ahead and "build" not in self._threads:
                self._build(None, names[0])
        if len(names) > 1:
            pool.keep_one_chip()
        return pool

    def _plan_cores(self, names: tuple[str, ...]) -> CorePlan:
        return divide_cores(os.sched_getaffinity(0), len(names), separate=_kind_of(names[0]) == "cuda")

    def _open_device(self, name: str, names: tuple[str, ...], plan: CorePlan) -> OwnedDevice:
        """Processes see only their GPU, and each has its own noise floors. Raises DeviceError once closed."""
        kind, _, index = name.partition(":")
        machine = (self._settings.measurements or find_machine_folder(self._settings.cache)).absolute()
        start = Start(
            setup=self._setup(),
            device="cuda:0" if kind == "cuda" else kind,
            checks=self._checks(kind),
            floors=machine / name.replace(":", "-") if len(names) > 1 else machine,
            alone=plan.shared and kind != EMULATED and self._settings.measure_time,
            build_cores=plan.builds,
        )
        cores, visible = plan.devices[names.index(name)], choose_visible(int(index)) if index else None

        def open_process(owner: str) -> EvaluatorProcess:
            chosen = replace(start, is_sandboxed=bool(owner))
            return self._start_process(lambda: EvaluatorProcess(chosen, cores=cores, visible=visible))

        device = OwnedDevice(name, open_process, self._settings, times=start.alone, require_open=self._require_open)
        with self._lock:
            self._opened.append(device)
        return device

    def _start_process(self, start: Callable[[], EvaluatorProcess]) -> EvaluatorProcess:
        self._require_open()  # else the loss of a closed process would start another
        process = start()
        with self._lock:
            self._processes = [*(one for one in self._processes if one.is_running), process]
            closed = self._closed
        if closed:  # since it was started
            process.close()
        process.wait_ready()
        return process

    @cached_property
    def _sandbox_failure(self) -> str:
        return explain_evaluator_failure()

    def _require_sandbox(self) -> None:
        if self._sandbox_failure:
            raise UsageError(
                f"references of clients need a sandbox, which is not possible here: {self._sandbox_failure}"
            )

    def _setup(self) -> Setup:
        settings = replace(self._settings, cache=(self._settings.cache or default_cache_folder()).absolute())
        return Setup(settings=settings, toolchain=self.toolchain, isolation=self.isolation)

    def _checks(self, kind: str) -> bool:
        return kind == EMULATED if self._settings.check_kernels is None else self._settings.check_kernels

    def _find_ahead(self, kind: str) -> DeviceEvaluators:
        """Only these evaluators import torch in this process."""
        with self._making_ahead:
            if kind not in self._ahead:
                forkserver = Forkserver(self.isolation)
                forkserver.begin_start()  # imports torch, too
                from harness.executors.device_evaluators import DeviceEvaluators
                from harness.sandbox.devices import EmulatedDevice

                device = EmulatedDevice(self._settings.gpu) if kind == EMULATED else None
                checks = kind != NO_DEVICE and self._checks(kind)
                gpu = match_gpu_model(list_gpus()[0].name) if kind == "cuda" else None
                evaluators = DeviceEvaluators(self._setup(), device, checks=checks, gpu=gpu, forkserver=forkserver)
                with self._lock:
                    self._ahead[kind] = evaluators
            return self._ahead[kind]

    def _build(self, job: Job | None, name: str, pool: DevicePool | None = None) -> None:
        self._work_ahead("build", self._build_now, job, _kind_of(name), pool)

    def _work_ahead(self, name: Literal["build", "compile"], work: Callable[..., None], *args: object) -> None:
        with self._lock:
            if name not in self._threads:
                plans = [self._plan_cores(names) for names in self._names.values() if names]
                cores = frozenset.intersection(*(plan.builds for plan in plans)) if plans else os.sched_getaffinity(0)
                self._threads[name] = ThreadPoolExecutor(
                    min(self._jobs, len(cores)), name, os.sched_setaffinity, (0, cores)
                )
            self._building += 1
            self._threads[name].submit(work, *args)

    def _build_now(self, job: Job | None, kind: str, pool: DevicePool | None) -> None:
        """Run in a thread. Without a `job` only prepare; without a `pool` the build is the whole evaluation."""
        try:
            self._require_open()
            with hold_cores_to_build(self._require_open):
                if job is None:
                    self._prepare_builds(kind)
                    return
                evaluators = self._find_ahead(kind)
                if pool is not None:
                    job.ahead = evaluators.build_ahead(job.task)
                elif job.future.set_running_or_notify_cancel():
                    job.future.set_result(evaluators.evaluate(job.task.on_device(NO_DEVICE)))
        except Exception as error:  # noqa: BLE001 - every future must end
            if job is not None:
                job.fail(error)
        finally:
            with self._lock:
                self._building -= 1
        if job is not None and pool is not None:
            pool.put(job)

    def _prepare_builds(self, kind: str) -> None:
        start_ahead()
        evaluators = self._find_ahead(kind)
        if kind == "cuda":
            evaluators.make_headers()

    def _compile_now(self, job: Job) -> None:
        """Run in a thread. A device that takes the job before compiles itself, also if memory is short."""
        try:
            self._require_open()
            with hold_cores_to_build(self._require_open):
                is_waiting = not (job.future.running() or job.future.done())
                if is_waiting and available_memory_bytes() > COMPILING_BYTES:
                    job.ahead = self._find_ahead("cuda").build_ahead(job.task)
        except Exception as error:  # noqa: BLE001 - the evaluation compiles itself
            if not self._closed:
                where = f"{job.task.subject.problem}/{job.task.subject.sample}"
                LOG.warning("%s was not compiled ahead: %s: %s", where, type(error).__name__, error)
        finally:
            job.is_prepared = True
            with self._lock:
                self._building -= 1

    def _require_open(self) -> None:
        if self._closed:
            raise DeviceError("the executor was closed")


def _kind_of(name: str) -> str:
    return name.partition(":")[0]


def _explain_loss(job: Job) -> Evaluation:
    """Return HARNESS_ERROR, since losses do not prove that the candidate is the cause."""
    message = f"the evaluator process was lost twice during this evaluation: {'; '.join(job.losses)}"
    return job.task.give_up(Outcome.HARNESS_ERROR, "evaluator_lost", message)
