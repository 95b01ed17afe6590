"""Evaluates on the devices of a Ray cluster.

Each device has an actor, which runs one evaluation at a time; builds are tasks on any node. The actors end with this
process.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Self

from harness.domain import EMULATED, DeviceError, Evaluation, HarnessError, Language, Outcome, UsageError
from harness.executors.cluster.connection import (
    Broken,
    ClusterSettings,
    DeviceActor,
    Opened,
    OpenExecutor,
    Versions,
    build_ahead,
    connect,
    make_version_reader,
    read_own_versions,
)
from harness.executors.device_pool import DeviceLost, DevicePool, Job
from harness.executors.executor import DeviceFacts, ExecutorStatus, Task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.languages import LANGUAGES

KINDS = ("cuda", "cpu", EMULATED)
MOST_LOSSES = 3  # of devices that ran one candidate, which then is suspect; two may have ended by chance
SUBMITTED_PER_DEVICE = 3
MOST_BUILDS = 256  # at a time, on all nodes
LOOK_EVERY_S = 1.0  # at the nodes of the cluster
OPEN_S = 900.0  # for the devices
WITHOUT_DEVICES_S = 300.0  # for a new node, after the last device was lost


class RayExecutor:
    """A context manager that ends every actor. For `builds_ahead` see `LocalExecutor`; actors use `open_executor`."""

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
        self._settings, self._chip, self._builds_ahead = settings, cluster.chip, builds_ahead
        self._ray, self._owns_connection = connect(cluster.address)
        self._nodes = Nodes(self._ray, cluster, settings, open_executor)
        self._build = self._ray.remote(num_cpus=1, max_retries=0)(build_ahead)
        self._builders = ThreadPoolExecutor(MOST_BUILDS, "build")
        self._build_counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._pools: dict[str, DevicePool] = {}  # by kind of device
        self._facts: dict[str, tuple[DeviceFacts, ...]] = {}
        self._failure = ""
        self._empty_since_s: float | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow_nodes, name="cluster", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def capacity(self) -> int:
        with self._lock:
            return SUBMITTED_PER_DEVICE * max(sum(len(pool.status()) for pool in self._pools.values()), 1)

    def devices(self, language: Language) -> tuple[DeviceFacts, ...]:
        """The first call waits for the devices of all nodes. Raises UsageError, and DeviceError without devices."""
        kind = self._choose_kind(language)
        return () if kind is None else self._find_facts(kind, self._find_pool(kind, language))

    def submit(self, task: Task) -> Future[Evaluation]:
        kind = self._choose_kind(task.subject.language)
        if kind is None:
            raise UsageError(f"--device {self._settings.device} does not evaluate language {task.subject.language}")
        pool = self._find_pool(kind, task.subject.language)
        (facts, *_) = self._find_facts(kind, pool)
        job = Job(task=task.on_device(facts.name))
        is_alone = pool.announce() and not self._builds_ahead
        if task.builds_extensions and kind != EMULATED and not is_alone:
            self._builders.submit(self._build_now, job, kind, pool)
        else:
            pool.put(job)
        return job.future

    def status(self) -> ExecutorStatus:
        with self._lock:
            pools = list(self._pools.values())
            return ExecutorStatus(
                building=self._nodes.count_builds(),
                builds=dict(self._build_counts),
                devices=tuple(device for pool in pools for device in pool.status()),
                lost=tuple(why for pool in pools for why in pool.lost),
                failure=self._failure,
            )

    def close(self) -> None:
        self._fail("the executor was closed")
        self._ends.set()
        self._thread.join()
        with suppress(self._ray.exceptions.RayError, RuntimeError):  # the cluster may be gone
            self._nodes.close()  # ends what threads of the pools and builders wait for
        for pool in self._pools.values():
            pool.close()
        self._builders.shutdown(wait=False)
        if self._owns_connection:
            self._owns_connection = False
            self._ray.shutdown()

    def _choose_kind(self, language: Language) -> str | None:
        kinds, wanted = LANGUAGES[language].devices, self._settings.device
        if wanted == "auto":
            return next(kind for kind in kinds if kind != "cuda" or self._nodes.has_gpu)
        return wanted if wanted in kinds else None

    def _find_pool(self, kind: str, language: Language) -> DevicePool:
        with self._lock:
            if self._failure:
                raise DeviceError(self._failure)
            if kind not in self._pools:
                open_device = partial(self._nodes.open_device, kind, language)
                names = [name for name, node in self._nodes.list_slots(kind).items() if not node.is_draining]
                self._pools[kind] = DevicePool(
                    names, open_device, _suspect_program, most_losses=MOST_LOSSES, can_grow=True
                )
            return self._pools[kind]

    def _find_facts(self, kind: str, pool: DevicePool) -> tuple[DeviceFacts, ...]:
        """Raises UsageError for several chips, since their times are not comparable, and DeviceError."""
        if kind in self._facts:
            return self._facts[kind]
        found = pool.facts(OPEN_S)
        chips = sorted({one.chip for one in found})
        if len(chips) > 1:
            raise UsageError(f"the cluster has {', '.join(chips)}: name the one to measure on with --chip")
        if not chips:
            raise self._explain_lack(kind, pool)
        self._nodes.choose_chip(kind, chips[0])
        self._facts[kind] = tuple({one.name: one for one in found}.values())
        return self._facts[kind]

    def _explain_lack(self, kind: str, pool: DevicePool) -> HarnessError:
        if self._failure or pool.lost:
            return DeviceError(self._failure or "; ".join(pool.lost))
        chips = sorted(set(self._nodes.other_chips.values()))
        if chips:
            return UsageError(f"no device of the cluster is a {self._chip}; it has {', '.join(chips)}")
        return UsageError(f"no node of the cluster has a device {kind}")

    def _build_now(self, job: Job, kind: str, pool: DevicePool) -> None:
        """Run in a thread. If a builder fails, the device's node builds."""
        try:
            architecture = self._settings.architecture or self._nodes.architectures.get(kind)
            settings = replace(self._settings, architecture=architecture)
            with self._nodes.hold_builder() as node:
                build = self._build.options(scheduling_strategy=on_node(node)).remote(settings, job.task)
                job.ahead = self._ray.get(build)
            with self._lock:
                self._build_counts += Counter(one.status for one in job.ahead.builds.values())
        except Exception as error:  # noqa: BLE001 - every future must end
            if not isinstance(error, self._ray.exceptions.RayError):
                job.fail(error)
        pool.put(job)

    def _fail(self, message: str) -> None:
        """Make every unfinished evaluation raise."""
        with self._lock:
            self._failure = self._failure or message
            pools = list(self._pools.values())
        for pool in pools:
            pool.end_jobs(self._failure)

    def _follow_nodes(self) -> None:
        try:
            while not self._ends.wait(LOOK_EVERY_S):
                self._nodes.look()
                with self._lock:
                    pools = dict(self._pools)
                for kind, pool in pools.items():
                    self._update(kind, pool)
                self._require_devices(pools)
        except Exception as error:  # noqa: BLE001 - all who wait must learn of it
            self._fail(str(error) if isinstance(error, HarnessError) else f"the cluster: {describe_error(error)}")

    def _update(self, kind: str, pool: DevicePool) -> None:
        slots, known = self._nodes.list_slots(kind), set(pool.names)
        for name, node in slots.items():
            if name in known and node.is_draining:
                pool.drop(name, is_excused=True)
            elif name not in known and not node.is_draining:
                pool.add(name)
        for name in known - set(slots):
            pool.drop(name, is_excused=False)

    def _require_devices(self, pools: dict[str, DevicePool]) -> None:
        """Raises DeviceError if jobs have waited too long, or for devices that are all broken."""
        waiting = [pool for pool in pools.values() if pool.has_idle_jobs]
        if not waiting:
            self._empty_since_s = None
            return
        self._empty_since_s = self._empty_since_s or time.monotonic()
        waited_s = time.monotonic() - self._empty_since_s
        reasons = "; ".join(why for pool in waiting for why in pool.lost)
        if reasons or waited_s > WITHOUT_DEVICES_S:
            raise DeviceError(reasons or f"the cluster has had no device for {waited_s:.0f} s")


def _suspect_program(job: Job) -> Evaluation:
    message = f"{len(job.losses)} devices were lost while they ran it: {'; '.join(job.losses)}"
    return job.task.give_up(Outcome.SUSPECT, "device_lost", message)


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
            reference = self._actor.evaluate.remote(job.task, job.ahead)
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
            read = self._ray.remote(num_cpus=0, max_retries=0)(make_version_reader())
            theirs = Versions(**self._ray.get(read.options(scheduling_strategy=on_node(node)).remote()))
            if difference := self._versions.explain_difference(theirs):
                raise DeviceError(f"node {node.name} is refused: {difference}")
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
