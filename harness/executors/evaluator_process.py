"""Evaluates on one device in a separate process: other work does not disturb its timing, and a lost CUDA context
affects no other device. It ends with its parent. Its messages are JSON, since it may have run a client's file.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.domain import Evaluation, WireError
from harness.domain.records import make_value
from harness.problems.watched_process import ProcessInterrupted, connect
from harness.store.serialization import decode_evaluation, encode_environment, encode_evaluation

if TYPE_CHECKING:
    from harness.domain import BuiltAhead
    from harness.executors.device_evaluators import DeviceEvaluators
    from harness.executors.executor import Task
    from harness.executors.locks import Say
    from harness.executors.settings import Setup
    from harness.sandbox.devices import Device

MOST_BYTES = 16 << 20  # of the answers to one request
LEAST_BYTES = 1 << 10  # that an answer counts as
IDLE_S = 1.0  # before the first task, after which more are prepared than it may need


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The caller holds `lock` during evaluations; "" needs none."""

    chip: str
    lock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Waiting for a lock or a candidate's first call; "" ends the wait."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    evaluation: Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The process can no longer use the device; with `for_good`, no process can."""

    reason: str
    for_good: bool = False


Answer = Ready | Waiting | Builds | Done | Lost
_KINDS: dict[str, type[Answer]] = {kind.__name__: kind for kind in (Ready, Waiting, Builds, Done, Lost)}


def encode_answer(answer: Answer) -> bytes:
    record = {"kind": type(answer).__name__}
    if not isinstance(answer, Done):
        return json.dumps(record | asdict(answer)).encode()
    evaluation = answer.evaluation
    parts = {
        "text": encode_evaluation(evaluation),
        "environment": encode_environment(evaluation.environment)[1],
        "build_log": "" if evaluation.build is None else evaluation.build.log,
    }
    return json.dumps(record | {"evaluation": parts}).encode()


def decode_answer(data: bytes) -> Answer:
    """Raises WireError unless every value has the type of its field."""
    try:
        record = json.loads(data)
        kind = _KINDS[record.pop("kind")]
        if kind is Done:
            return Done(evaluation=decode_evaluation(**record.pop("evaluation"), checks=True), **record)
        answer: Answer = make_value(kind, record, checks=True)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise WireError(f"it sent no valid answer: {type(error).__name__}: {str(error)[:200]}") from error
    return answer


END_S = 5.0  # for this process to end its children


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """With `alone`, timing excludes builds. Otherwise evaluations run beside builds, and timing in other processes
    excludes both. `is_sandboxed`: for a client's problem files (`harness.executors.clients`); builds on `build_cores`.
    """

    setup: Setup
    device: str
    checks: bool
    floors: Path | None
    alone: bool
    build_cores: frozenset[int]
    is_sandboxed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    task: Task
    ahead: BuiltAhead
    upcoming: tuple[Task, ...] = ()  # of the same client


def main() -> None:
    opened, (cores,) = connect(sys.argv[1:])
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})  # before torch counts cores
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each page of a worker's device memory is a descriptor
    with opened as line, suppress(KeyboardInterrupt, BrokenPipeError):
        messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        has_ended = threading.Event()
        started: list[DeviceEvaluators] = []
        signal.signal(signal.SIGINT, partial(_interrupt, has_ended))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # Ray's threads block it
        shared = (line, messages, has_ended, started)
        threading.Thread(target=_receive, args=shared, name="messages", daemon=True).start()
        _serve(*shared)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # everything is closed; unloading torch would take half a second more


def _interrupt(has_ended: threading.Event, *_: object) -> None:
    """Check `has_ended`, since problem files may send SIGINT, too."""
    if not has_ended.is_set():
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise ProcessInterrupted


def _receive(
    line: Connection, messages: queue.SimpleQueue[Any], has_ended: threading.Event, started: list[DeviceEvaluators]
) -> None:
    """Run in a thread, to detect the parent's end. None follows the signal. Ends compilers: others wait for them."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(line.recv())
    has_ended.set()
    if started:  # an exception amid an import prints a traceback or is lost
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    messages.put(None)
    for evaluators in started:
        evaluators.stop_builds()
    time.sleep(END_S)
    os._exit(1)  # a parent that was killed cannot end this process


def _serve(
    line: Connection, messages: queue.SimpleQueue[Any], has_ended: threading.Event, started: list[DeviceEvaluators]
) -> None:
    from harness.domain import HarnessError
    from harness.executors.clients import BuildsAhead, settle
    from harness.executors.locks import hold_to_evaluate

    start: Start | None = messages.get()
    if start is None:
        return
    if start.is_sandboxed:
        start = settle(start)

    sending = threading.Lock()

    def send(answer: Answer) -> None:
        with sending:  # builds are counted in threads
            line.send_bytes(encode_answer(answer))

    def say(reason: str) -> None:
        send(Waiting(reason=reason))

    def report_builds() -> None:
        with suppress(OSError):  # the parent has ended; the messages' thread ends this process
            send(Builds(counts=dict(evaluators.build_counts)))

    try:
        device, evaluators = _open(start, say, report_builds)
    except (HarnessError, RuntimeError) as error:  # RuntimeError: torch cannot use the GPU
        send(Lost(reason=f"{type(error).__name__}: {error}"))
        return
    with closing(evaluators), closing(BuildsAhead(start)) as builds:
        lock = device.lock_name
        send(Ready(chip=device.chip, lock=lock))
        watch = _watch(device)
        started.append(evaluators)
        if has_ended.is_set():
            return
        work = _await_first(messages, evaluators)
        while work is not None:
            builds.begin(work.upcoming)
            with hold_to_evaluate(lock, say, times=start.alone):
                answer = _evaluate(device, evaluators, work, watch)
            send(answer)
            if isinstance(answer, Lost):
                return
            work = messages.get()


def _await_first(messages: queue.SimpleQueue[Any], evaluators: DeviceEvaluators) -> Assignment | None:
    """Prepare evaluations if there is time for it, as during builds."""
    try:
        first: Assignment | None = messages.get(timeout=IDLE_S)
    except queue.Empty:
        evaluators.warm_up()
        first = messages.get()
    return first


def _open(start: Start, say: Say, report_builds: Callable[[], None]) -> tuple[Device, DeviceEvaluators]:
    from harness.sandbox.forkserver import Forkserver

    forkserver = Forkserver(start.setup.isolation)
    forkserver.begin_start()  # imports torch, too
    gc.disable()  # a tenth of the time to import torch
    from harness.executors.device_evaluators import DeviceEvaluators
    from harness.executors.locks import hold_cores_to_time
    from harness.problems.watched_process import set_reference_limit
    from harness.sandbox.devices import open_device
    from harness.sandbox.memory_limits import keep_freed_memory

    gc.freeze()  # each collection would take 0.1 s
    gc.enable()
    settings = start.setup.settings
    set_reference_limit(settings.reference_timeout_s)
    keep_freed_memory()
    device = open_device(start.device, settings.gpu, memory_bytes=settings.memory_bytes)
    device.check()
    evaluators = partial(
        DeviceEvaluators, start.setup, device, checks=start.checks, floors=start.floors, forkserver=forkserver,
        on_count=report_builds, say=say,
    )  # fmt: skip
    return device, evaluators(quiet=partial(hold_cores_to_time, say)) if start.alone else evaluators()


def _watch(device: Device) -> XidWatch | None:
    gpu = device.open_nvml()
    return None if gpu is None else XidWatch(*gpu)


def _evaluate(device: Device, evaluators: DeviceEvaluators, work: Assignment, watch: XidWatch | None) -> Done | Lost:
    """A fault of the idle GPU before the evaluation counts as one during it."""

    if watch is not None and (fault := watch.find_fault()):
        return Lost(reason=fault, for_good=True)
    evaluation = evaluators.evaluate(work.task, work.ahead)
    if watch is not None and (fault := watch.find_fault()):
        return Lost(reason=fault, for_good=True)
    if evaluation.outcome.is_error:
        try:
            device.check()
        except RuntimeError as error:  # an illegal access has destroyed the CUDA context
            return Lost(reason=f"{error}, after {evaluation.message}")
    return Done(evaluation=evaluation)


# Caused by programs, after which the GPU is sound: exceptions of the graphics engine and the video processor, page
# faults, stopped and cleaned up channels, timeouts of context switches. As in NVIDIA's Kubernetes device plugin.
CAUSED_BY_PROGRAMS = (13, 31, 43, 45, 68, 109)


class XidWatch:
    """`handle` is the GPU's in `nvml`. Sees nothing if the driver has no such events."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._events: Any = None
        with suppress(nvml.NVMLError):
            self._events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)

    def find_fault(self) -> str:
        """Return the error since the last call that no program can cause, or ""."""
        with suppress(self._nvml.NVMLError):  # a timeout, once there are no more events
            while True:
                number = self._nvml.nvmlEventSetWait_v2(self._events, 0).eventData
                if number not in CAUSED_BY_PROGRAMS:
                    return f"Xid {number}, a fault of the GPU or its driver"
        return ""
