"""Tracks the nodes of a Ray cluster, and opens their devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from harness.domain import DeviceError, Evaluation, HarnessError, Language
from harness.executors.cluster.connection import ClusterSettings, Versions, make_version_reader, read_own_versions
from harness.executors.cluster.remote import Broken, Built, DeviceActor, Opened, OpenExecutor
from harness.executors.device_pool import DeviceLost, Job
from harness.executors.executor import DeviceFacts
from harness.executors.settings import LocalSettings


@dataclass(slots=True, kw_only=True, eq=False)
class ClusterNode:
    id: str
    address: str
    cpus: float
    gpus: int
    builds: int = 0
    is_draining: bool = False

    @property
    def name(self) -> str:
        return f"{self.address}/{self.id[:6]}"

    def list_slots(self, kind: str) -> list[str]:
        if kind == "cuda":
            return [f"{self.name} cuda {index}" for index in range(self.gpus)]
        return [f"{self.name} {kind}"] if self.cpus >= 1 else []


class ClusterDevice:
    """A device whose fault no program causes keeps its actor, so that no other gets the GPU."""

    def __init__(self, ray: Any, name: str, actor: Any, facts: DeviceFacts) -> None:
        self._ray, self._name, self._actor, self._is_broken = ray, name, actor, False
        self.facts = facts

    def evaluate(self, job: Job) -> Evaluation:
        try:
            reference = self._actor.evaluate.remote(job.task, Built(ahead=job.ahead, packed=dict(job.packed)))
            answer: Evaluation | Broken = self._ray.get(reference)
        except self._ray.exceptions.RayActorError as error:
            raise DeviceLost(describe_error(error)) from error
        except Exception as error:
            raise HarnessError(f"{self._name}: {describe_error(error)}") from error
        if isinstance(answer, Broken):
            self._is_broken = True
            raise DeviceLost(answer.reason, for_good=True)
        return answer

    def close(self) -> None:
        if not self._is_broken:
            self._ray.kill(self._actor)


class Nodes:
    """Thread-safe."""

    def __init__(
        self, ray: Any, cluster: ClusterSettings, settings: LocalSettings, open_executor: OpenExecutor
    ) -> None:
        self._ray, self._cluster, self._settings, self._open_executor = ray, cluster, settings, open_executor
        self._versions = read_own_versions()
        self._changed = threading.Condition()
        self._nodes: dict[str, ClusterNode] = {}
        self._actors: list[Any] = []
        self._is_closed = False
        self._chips: dict[str, str] = {}  # by kind, once chosen
        self.architectures: dict[str, str] = {}  # by kind, of an open device
        self.other_chips: dict[str, str] = {}  # by device; not wanted
        self.look()

    def look(self) -> None:
        draining: dict[str, int] = import_module("ray._private.state").state.get_draining_nodes()  # no public call
        found = {one["NodeID"]: one for one in self._ray.nodes() if one["Alive"]}
        with self._changed:
            self._nodes = {key: self._nodes.get(key) or _describe_node(one) for key, one in found.items()}
            for node in self._nodes.values():
                node.is_draining = node.id in draining
            self._changed.notify_all()

    @property
    def has_gpu(self) -> bool:
        with self._changed:
            return any(node.gpus for node in self._nodes.values())

    def list_slots(self, kind: str) -> dict[str, ClusterNode]:
        """Return all devices of a kind by name, also draining ones."""
        with self._changed:
            return {name: node for node in self._nodes.values() for name in node.list_slots(kind)}

    def choose_chip(self, kind: str, chip: str) -> None:
        self._chips[kind] = chip

    def open_device(self, kind: str, language: Language, name: str) -> ClusterDevice | None:
        """Return None for a device that has gone or has another chip. Raises DeviceError."""
        node = self.list_slots(kind).get(name)
        if node is None:
            return None
        try:
            self._require_versions(node)
            actor, opened = self._start(node, kind, language)
        except self._ray.exceptions.RayError as error:
            self.look()
            if name not in self.list_slots(kind):
                return None
            raise DeviceError(describe_error(error)) from error
        if isinstance(opened, Broken):
            raise DeviceError(opened.reason)
        if not self._is_wanted(kind, opened.facts.chip):
            self._ray.kill(actor)
            self.other_chips[name] = opened.facts.chip
            return None
        self.architectures[kind] = opened.architecture
        return ClusterDevice(self._ray, name, actor, opened.facts)

    def _require_versions(self, node: ClusterNode) -> None:
        """Raises DeviceError."""
        read = self._ray.remote(num_cpus=0, max_retries=0)(make_version_reader())
        theirs = Versions(**self._ray.get(read.options(scheduling_strategy=on_node(node)).remote()))
        if difference := self._versions.explain_difference(theirs):
            raise DeviceError(f"node {node.name} is refused: {difference}")

    def _start(self, node: ClusterNode, kind: str, language: Language) -> tuple[Any, Opened | Broken]:
        options = {"num_cpus": 0, "num_gpus": int(kind == "cuda"), "max_restarts": 0, "max_task_retries": 0}
        make = self._ray.remote(**options)(DeviceActor).options(scheduling_strategy=on_node(node))
        actor = make.remote(replace(self._settings, device=kind), max(node.gpus, 1), self._open_executor)
        with self._changed:
            self._actors.append(actor)
        return actor, self._ray.get(actor.open.remote(language))

    def _is_wanted(self, kind: str, chip: str) -> bool:
        named = (self._cluster.chip or "").lower() in chip.lower()
        return named and self._chips.get(kind, chip) == chip

    @contextmanager
    def hold_builder(self) -> Iterator[ClusterNode]:
        """Yield the node with the most idle cores, once there is one. Raises DeviceError when this is closed."""
        with self._changed:
            while (node := self._find_builder()) is None:
                if self._is_closed:
                    raise DeviceError("the executor was closed")
                self._changed.wait()
            node.builds += 1
        try:
            yield node
        finally:
            with self._changed:
                node.builds -= 1
                self._changed.notify_all()

    def _find_builder(self) -> ClusterNode | None:
        if self._is_closed:
            return None
        free = [node for node in self._nodes.values() if not node.is_draining and node.builds < int(node.cpus)]
        return min(free, key=lambda node: node.builds / node.cpus, default=None)

    def count_builds(self) -> int:
        with self._changed:
            return sum(node.builds for node in self._nodes.values())

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            actors, self._actors = self._actors, []
        for actor in actors:
            self._ray.kill(actor)


def _describe_node(found: dict[str, Any]) -> ClusterNode:
    resources, address = found["Resources"], found["NodeManagerAddress"]
    cpus, gpus = resources.get("CPU", 0.0), int(resources.get("GPU", 0))
    return ClusterNode(id=found["NodeID"], address=address, cpus=cpus, gpus=gpus)


def on_node(node: ClusterNode) -> Any:
    strategies = import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)


def describe_error(error: Exception) -> str:
    error = getattr(error, "cause", None) or error  # of Ray's exception for one that was raised on a node
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
