"""Runs on the nodes: one actor per device, and builds as tasks."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from harness.builder import default_cache_folder, find_machine_folder, probe_toolchain
from harness.builder.cache import find_entry, pack_builds, unpack_builds
from harness.domain import (
    NOTHING_AHEAD,
    BuiltAhead,
    DeviceError,
    Evaluation,
    HarnessError,
    Language,
    Outcome,
    UsageError,
)
from harness.executors.device_evaluators import DeviceEvaluators
from harness.executors.executor import DeviceFacts, Executor
from harness.executors.local import LocalExecutor
from harness.executors.locks import hold_cores_to_build
from harness.executors.placement import divide_cores
from harness.executors.settings import LocalSettings, Setup
from harness.executors.tasks import Task
from harness.sandbox.policy import probe_isolation

NODE = "node"  # a fact of the environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    facts: DeviceFacts
    node: str
    architecture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    ahead: BuiltAhead = NOTHING_AHEAD
    packed: dict[str, bytes] = field(default_factory=dict)


class NodeExecutor(Executor, Protocol):
    def submit(self, task: Task, ahead: BuiltAhead = NOTHING_AHEAD) -> Future[Evaluation]: ...


OpenExecutor = Callable[[LocalSettings], NodeExecutor]


class DeviceActor:
    """Holds no context on its device: the local executor's evaluator process does."""

    def __init__(self, settings: LocalSettings, neighbours: int, open_executor: OpenExecutor = LocalExecutor) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)  # set by Ray; candidates and baselines would inherit it
        gpu = _find_gpu()
        if gpu is not None:
            os.sched_setaffinity(0, share_cores(os.sched_getaffinity(0), gpu, neighbours))
        self._node = socket.gethostname()
        device = settings.device if gpu is None else f"cuda-{gpu}"
        folder = find_machine_folder(settings.cache) / f"{self._node}-{device}"
        self._settings = replace(settings, measurements=folder)
        self._open_executor = open_executor
        self._executor: NodeExecutor | None = None

    def open(self, language: Language) -> Opened | Broken:
        try:
            self._executor = self._open_executor(self._settings)
            facts = self._executor.devices(language)
        except HarnessError as error:
            return Broken(reason=str(error))
        if not facts:
            return Broken(reason=f"{self._settings.device} is no device for language {language}")
        toolchain = probe_toolchain(self._settings.architecture)
        return Opened(facts=facts[0], node=self._node, architecture=toolchain.architecture)

    def evaluate(self, task: Task, built: Built) -> Evaluation | Broken:
        assert self._executor is not None
        try:
            future = self._executor.submit(task, unpack(built, self._settings.cache or default_cache_folder()))
            evaluation = future.result()
        except DeviceError as error:
            return Broken(reason=str(error))
        except UsageError as error:
            return task.give_up(Outcome.PROBLEM_ERROR, "sandbox", str(error))
        return replace(evaluation, environment=(*evaluation.environment, (NODE, self._node)))

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()


def build_ahead(settings: LocalSettings, task: Task) -> Built:
    evaluators = _find_evaluators(settings)
    with hold_cores_to_build():
        ahead = evaluators.build_ahead(task)
    return Built(ahead=ahead, packed=pack_builds(settings.cache or default_cache_folder(), ahead.builds))


def unpack(built: Built, cache: Path) -> BuiltAhead:
    unpack_builds(cache, built.packed)
    builds = {}
    for key, build in built.ahead.builds.items():
        library = build.extension and str(find_entry(cache, key) / Path(build.extension).name)
        builds[key] = replace(build, extension=library)
    return replace(built.ahead, builds=builds)


def share_cores(cores: set[int], index: int, count: int) -> set[int]:
    """Divide the cores equally between the GPUs of a node; return all if there are too few."""
    if divide_cores(cores, count, separate=True).shared:
        return cores
    ordered, size = sorted(cores), len(cores) // count
    return set(ordered[index % count * size : (index % count + 1) * size])


def _find_gpu() -> int | None:
    from importlib import import_module

    assigned = import_module("ray").get_runtime_context().get_accelerator_ids().get("GPU", [])
    return int(assigned[0]) if assigned else None


@lru_cache(maxsize=2)
def _find_evaluators(settings: LocalSettings) -> DeviceEvaluators:
    setup = Setup(
        settings=settings,
        toolchain=probe_toolchain(settings.architecture),
        isolation=probe_isolation(settings.isolation),
    )
    evaluators = DeviceEvaluators(setup, None, checks=False)
    evaluators.expect_many()
    return evaluators
