"""Tracks the nodes of a Ray cluster and their devices. Used by one thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from harness.domain import EMULATED, DeviceError, HarnessError, Language, UsageError
from harness.executors.cluster.connection import ClusterSettings, Versions, make_version_reader, read_own_versions
from harness.executors.cluster.jobs import ClusterJob
from harness.executors.cluster.remote import Broken, DeviceActor, Opened, OpenExecutor
from harness.executors.settings import LocalSettings
from harness.languages import LANGUAGES

MOST_FAILURES = 4  # of a device's actor, consecutive; one candidate causes three
KINDS = ("cuda", "cpu", EMULATED)

Expect = Callable[[Any, Callable[[Any], None]], None]


@dataclass(slots=True, kw_only=True, eq=False)
class ClusterDevice:
    name: str
    kind: str
    node: ClusterNode
    actor: Any
    opened: Opened | None = None
    job: ClusterJob | None = None

    @property
    def is_idle(self) -> bool:
        return self.opened is not None and self.job is None and not self.node.is_draining


@dataclass(slots=True, kw_only=True, eq=False)
class ClusterNode:
    id: str
    address: str
    cpus: float
    gpus: int
    builds: int = 0
    is_draining: bool = False
    other_chips: dict[str, str] = field(default_factory=dict)  # by device; not wanted

    @property
    def name(self) -> str:
        return f"{self.address}/{self.id[:6]}"

    def list_slots(self, kind: str) -> list[str]:
        if kind == "cuda":
            return [f"{self.name} cuda {index}" for index in range(self.gpus)]
        return [f"{self.name} {kind}"] if self.cpus >= 1 else []


@dataclass(slots=True, kw_only=True)
class Nodes:
    """`expect(reference, handler)` calls the handler when the reference is ready. `out_of_service` holds the reason per
    unused device or node.
    """

    ray: Any
    cluster: ClusterSettings
    settings: LocalSettings
    open_executor: OpenExecutor
    expect: Expect
    versions: Versions = field(default_factory=read_own_versions)
    devices: dict[str, ClusterDevice] = field(default_factory=dict)
    out_of_service: dict[str, str] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    _nodes: dict[str, ClusterNode | None] = field(default_factory=dict)  # None: its versions are not known, or refused
    _probing: set[str] = field(default_factory=set)
    _languages: dict[str, Language] = field(default_factory=dict)  # by wanted kind of device
    _failures: Counter[str] = field(default_factory=Counter)
    _chips: dict[str, str] = field(default_factory=dict)  # by kind, once chosen
    _kept: list[Any] = field(default_factory=list)  # actors of devices out of service

    def choose_kind(self, language: Language) -> str | None:
        kinds, wanted = LANGUAGES[language].devices, self.settings.device
        if wanted == "auto":
            has_gpu = any(node is not None and node.gpus for node in self._nodes.values())
            return next(kind for kind in kinds if kind != "cuda" or has_gpu)
        return wanted if wanted in kinds else None

    def want(self, kind: str, language: Language) -> None:
        self._languages.setdefault(kind, language)
        self._start_missing()

    def look(self) -> None:
        alive = {node["NodeID"]: node for node in self.ray.nodes() if node["Alive"]}
        draining = self._find_draining()
        for gone in set(self._nodes) - set(alive):
            del self._nodes[gone]
            self.out_of_service.pop(gone, None)
        for device in [one for one in self.devices.values() if not self.is_alive(one)]:
            if device.opened is not None and device.job is None:
                del self.devices[device.name]  # the reference of a busy one tells of the loss
        for found in set(alive) - set(self._nodes):
            self._probe(alive[found])
        for node in self._nodes.values():
            if node is not None:
                node.is_draining = node.id in draining
        self._start_missing()

    @property
    def is_probing(self) -> bool:
        return bool(self._probing & set(self._nodes))

    def list_open(self, kind: str) -> list[ClusterDevice]:
        return [device for device in self.devices.values() if device.kind == kind and device.opened is not None]

    def is_opening(self, kind: str) -> bool:
        return any(device.kind == kind and device.opened is None for device in self.devices.values())

    def choose_chip(self, kind: str) -> None:
        """Raises UsageError if there are several: their times are not comparable."""
        chips = sorted({device.opened.facts.chip for device in self.list_open(kind) if device.opened})
        if len(chips) > 1:
            raise UsageError(f"the cluster has {', '.join(chips)}: name the one to measure on with --chip")
        self._chips[kind] = chips[0]

    @property
    def has_only_broken(self) -> bool:
        """Return True if only new nodes can provide a device."""
        return bool(self.out_of_service) and not any(True for kind in self._languages for _ in self._list_missing(kind))

    def choose_builder(self) -> ClusterNode | None:
        usable = [node for node in self._nodes.values() if node is not None and not node.is_draining]
        free = [node for node in usable if node.builds < int(node.cpus)]
        return min(free, key=lambda node: node.builds / node.cpus, default=None)

    def count_builds(self) -> int:
        return sum(node.builds for node in self._nodes.values() if node is not None)

    def explain_lack(self, kind: str) -> HarnessError:
        if self.out_of_service:
            return DeviceError("; ".join(self.out_of_service.values()))
        chips = sorted({chip for node in self._nodes.values() if node for chip in node.other_chips.values()})
        if chips:
            return UsageError(f"no device of the cluster is a {self.cluster.chip}; it has {', '.join(chips)}")
        return UsageError(f"no node of the cluster has a device {kind}")

    def is_alive(self, device: ClusterDevice) -> bool:
        return device.node.id in self._nodes

    def lose(self, device: ClusterDevice, reason: str, *, for_good: bool = False) -> None:
        """End the device's actor. With `for_good`, take the device out of service and keep the actor, so that no other
        gets the GPU.
        """
        if self.devices.get(device.name) is device:
            del self.devices[device.name]
        if for_good:
            self._kept.append(device.actor)
        else:
            self.ray.kill(device.actor)
        if not self.is_alive(device):
            return
        self._failures[device.name] += 1
        if for_good:
            self.out_of_service[device.name] = f"{device.name} cannot be used: {reason}"
        elif self._failures[device.name] >= MOST_FAILURES:
            self.out_of_service[device.name] = f"{device.name} was lost {MOST_FAILURES} times in a row: {reason}"

    def note_success(self, device: ClusterDevice) -> None:
        self._failures[device.name] = 0
        self.done[device.name] += 1

    def close(self) -> None:
        for actor in (*(device.actor for device in self.devices.values()), *self._kept):
            self.ray.kill(actor)
        self.devices.clear()
        self._kept.clear()

    def on_node(self, node: str) -> Any:
        strategies = import_module("ray.util.scheduling_strategies")
        return strategies.NodeAffinitySchedulingStrategy(node, soft=False)

    def _find_draining(self) -> dict[str, int]:
        """Return deadlines by node. Ray has no public call for it."""
        found: dict[str, int] = import_module("ray._private.state").state.get_draining_nodes()
        return found

    def _probe(self, found: dict[str, Any]) -> None:
        node_id, resources = found["NodeID"], found["Resources"]
        node = ClusterNode(
            id=node_id,
            address=found["NodeManagerAddress"],
            cpus=resources.get("CPU", 0.0),
            gpus=int(resources.get("GPU", 0)),
        )
        self._nodes[node_id] = None
        self._probing.add(node_id)
        read = self.ray.remote(num_cpus=0, max_retries=0)(make_version_reader())
        reference = read.options(scheduling_strategy=self.on_node(node_id)).remote()
        self.expect(reference, lambda ready: self._admit(node, ready))

    def _admit(self, node: ClusterNode, ready: Any) -> None:
        self._probing.discard(node.id)
        try:
            theirs = Versions(**self.ray.get(ready))
        except self.ray.exceptions.RayError:
            self._nodes.pop(node.id, None)  # is looked at again, if it is alive
            return
        difference = self.versions.explain_difference(theirs)
        if node.id not in self._nodes:
            return
        if difference:
            self.out_of_service[node.id] = f"node {node.name} is refused: {difference}"
            return
        self._nodes[node.id] = node
        self._start_missing()

    def _start_missing(self) -> None:
        for kind, language in self._languages.items():
            for node, name in self._list_missing(kind):
                self._start(node, name, kind, language)

    def _list_missing(self, kind: str) -> Iterator[tuple[ClusterNode, str]]:
        for node in self._nodes.values():
            if node is not None and not node.is_draining:
                for name in node.list_slots(kind):
                    if name not in {*self.devices, *self.out_of_service, *node.other_chips}:
                        yield node, name

    def _start(self, node: ClusterNode, name: str, kind: str, language: Language) -> None:
        options = {"num_cpus": 0, "num_gpus": int(kind == "cuda"), "max_restarts": 0, "max_task_retries": 0}
        make = self.ray.remote(**options)(DeviceActor).options(scheduling_strategy=self.on_node(node.id))
        actor = make.remote(replace(self.settings, device=kind), max(node.gpus, 1), self.open_executor)
        device = ClusterDevice(name=name, kind=kind, node=node, actor=actor)
        self.devices[name] = device
        self.expect(actor.open.remote(language), lambda ready: self._note_opened(device, ready))

    def _note_opened(self, device: ClusterDevice, ready: Any) -> None:
        try:
            opened: Opened | Broken = self.ray.get(ready)
        except self.ray.exceptions.RayError as error:
            self.lose(device, describe_error(error))
            return
        if isinstance(opened, Broken):
            self.lose(device, opened.reason, for_good=True)
        elif self._is_wanted(device.kind, opened.facts.chip):
            device.opened = opened
        else:
            self._dismiss(device, opened.facts.chip)

    def _is_wanted(self, kind: str, chip: str) -> bool:
        named = (self.cluster.chip or "").lower() in chip.lower()
        return named and self._chips.get(kind, chip) == chip

    def _dismiss(self, device: ClusterDevice, chip: str) -> None:
        """Do not report another chip: it is no fault."""
        self.ray.kill(device.actor)
        del self.devices[device.name]
        device.node.other_chips[device.name] = chip


def describe_error(error: Exception) -> str:
    error = getattr(error, "cause", None) or error  # of Ray's exception for one that was raised on a node
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
