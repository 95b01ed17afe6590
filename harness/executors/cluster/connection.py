"""Connects to a Ray cluster, compares its nodes' versions, and holds an actor per device and builds as tasks."""

import logging
import os
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self

from harness.builder.cache import default_cache_folder, find_entry, find_machine_folder, pack_builds, unpack_builds
from harness.builder.toolchain import probe_toolchain
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
from harness.executors.device_pool import divide_cores
from harness.executors.executor import DeviceFacts, Executor, Task
from harness.executors.local import LocalExecutor
from harness.executors.locks import hold_cores_to_build
from harness.executors.settings import LocalSettings, Setup
from harness.sandbox.policy import probe_isolation
from harness.shipped import name_install

NODE = "node"  # a fact of the environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    facts: DeviceFacts
    node: str
    architecture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    reason: str


class NodeExecutor(Executor, Protocol):
    def submit(self, task: Task, ahead: BuiltAhead = NOTHING_AHEAD) -> Future[Evaluation]: ...


OpenExecutor = Callable[[LocalSettings], NodeExecutor]


class DeviceActor:
    """Holds no context on its device: the local executor's evaluator process does."""

    def __init__(self, settings: LocalSettings, neighbours: int, open_executor: OpenExecutor = LocalExecutor) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)  # set by Ray; candidates and baselines would inherit it
        from importlib import import_module

        assigned = import_module("ray").get_runtime_context().get_accelerator_ids().get("GPU", [])
        gpu = int(assigned[0]) if assigned else None
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

    def evaluate(self, task: Task, ahead: BuiltAhead) -> Evaluation | Broken:
        assert self._executor is not None
        try:
            future = self._executor.submit(task, unpack(ahead, self._settings.cache or default_cache_folder()))
            evaluation = future.result()
        except DeviceError as error:
            return Broken(reason=str(error))
        except UsageError as error:
            return task.give_up(Outcome.PROBLEM_ERROR, "sandbox", str(error))
        return replace(evaluation, environment=(*evaluation.environment, (NODE, self._node)))

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()


def build_ahead(settings: LocalSettings, task: Task) -> BuiltAhead:
    evaluators = _find_evaluators(settings)
    with hold_cores_to_build():
        ahead = evaluators.build_ahead(task)
    return replace(ahead, packed=pack_builds(settings.cache or default_cache_folder(), ahead.builds))


def unpack(ahead: BuiltAhead, cache: Path) -> BuiltAhead:
    unpack_builds(cache, ahead.packed)
    builds = {}
    for key, build in ahead.builds.items():
        library = build.extension and str(find_entry(cache, key) / Path(build.extension).name)
        builds[key] = replace(build, extension=library)
    return replace(ahead, builds=builds, packed={})


def share_cores(cores: set[int], index: int, count: int) -> set[int]:
    """Divide the cores equally between the GPUs of a node; return all if there are too few."""
    if divide_cores(cores, count, separate=True).shared:
        return cores
    ordered, size = sorted(cores), len(cores) // count
    return set(ordered[index % count * size : (index % count + 1) * size])


@lru_cache(maxsize=2)
def _find_evaluators(settings: LocalSettings) -> DeviceEvaluators:
    setup = Setup(
        settings=settings,
        toolchain=probe_toolchain(settings.architecture),
        isolation=probe_isolation(settings.isolation),
    )
    return DeviceEvaluators(setup, None, checks=False)


NAMESPACE = "harness"
LOCAL = "local"  # address: a cluster of this machine alone, for this command
CONNECT_S = 5.0  # and again for an answer
ANSWER_BYTES = 2**16
FRAME_HEAD_BYTES, SETTINGS, HEADERS = 9, 4, 1
# Unary methods that only the server of a cluster has, and only that of Ray's client, `ray://`.
CLUSTER, CLIENT = b"/ray.rpc.NodeInfoGcsService/CheckAlive", b"/ray.rpc.RayletDriver/ClusterInfo"
STATUS = re.compile(rb"grpc-status(?:\x01(\d)|\x02(\d\d))")
UNIMPLEMENTED, UNAVAILABLE = b"12", b"14"
LOCAL_STORE_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """`address` is that of ray.init; `chip` is a part of the name of the GPU or CPU to use."""

    address: str = "auto"
    chip: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    harness: str
    package: str
    torch: str
    python: str

    def explain_difference(self, other: Self) -> str:
        mine, theirs = asdict(self), asdict(other)
        named = [f"{name} {theirs[name]}, here {mine[name]}" for name in mine if mine[name] != theirs[name]]
        return "; ".join(named)


def connect(address: str) -> tuple[Any, bool]:
    """Return (the ray module, whether this call connected it). Raises UsageError and DeviceError."""
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise UsageError(f"--executor ray needs {error.name}: {name_install('ray')}") from error
    if ray.is_initialized():
        return ray, False
    starts = {"include_dashboard": False, "object_store_memory": LOCAL_STORE_BYTES} if address == LOCAL else {}
    try:
        if address != LOCAL:
            _reach(_resolve(address), CLIENT if address.startswith("ray://") else CLUSTER)
        ray.init(address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR, **starts)
    except (OSError, RuntimeError, ValueError, SystemExit) as error:  # Ray itself exits where it finds no cluster
        raise (UsageError if isinstance(error, ValueError) else DeviceError)(
            f"no Ray cluster at {address}: {error}. Start one with `ray start --head`, or choose --address {LOCAL}"
        ) from error
    return ray, True


def _resolve(address: str) -> str:
    """Return HOST:PORT; `auto` uses RAY_ADDRESS or a cluster of this machine. Raises ValueError and OSError."""
    if address != "auto":
        return address.rpartition("://")[2]
    found = import_module("ray._private.services").canonicalize_bootstrap_address(address)
    if found is None:
        raise ConnectionError("none runs on this machine")
    return str(found)


def _reach(address: str, method: bytes) -> None:
    """Raise OSError soon, since Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ValueError("expected HOST:PORT")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as line:
        if os.environ.get("RAY_USE_TLS", "0").lower() in {"1", "true"}:
            return
        line.sendall(_request(method))
        if _read_status(line, address) in (UNIMPLEMENTED, UNAVAILABLE):
            raise ConnectionError(f"{address} answers, but is no Ray cluster")


def _read_status(line: socket.socket, address: str) -> bytes:
    """Return gRPC's status. Its connection begins with a settings frame; its headers have no Huffman code."""
    received, deadline = b"", time.monotonic() + CONNECT_S
    while (status := STATUS.search(received)) is None:
        line.settimeout(max(deadline - time.monotonic(), 1e-3))
        try:
            more = line.recv(ANSWER_BYTES)
        except TimeoutError:
            raise TimeoutError(f"{address} accepted the connection, but timed out after {CONNECT_S:g} s") from None
        received += more
        other = len(received) >= FRAME_HEAD_BYTES and received[3] != SETTINGS
        if not more or other or len(received) > ANSWER_BYTES:
            return UNIMPLEMENTED
    return status[1] or status[2]


def _request(method: bytes) -> bytes:
    """Return an empty request in HTTP/2: its preface, settings, and a POST on stream 1, with headers as in RFC 7541."""

    def text(value: bytes) -> bytes:
        return bytes([len(value)]) + value

    headers = b"\x83\x86\x04" + text(method) + b"\x01" + text(b"ray")
    headers += b"\x0f\x10" + text(b"application/grpc") + b"\0" + text(b"te") + text(b"trailers")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(SETTINGS, 0, 0, b"")
    return preface + _frame(HEADERS, 4, 1, headers) + _frame(0, 1, 1, bytes(5))


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def make_version_reader() -> Callable[[], dict[str, str]]:
    """The function must be self-contained: the node may have another version of this package, or none."""

    def read() -> dict[str, str]:
        import platform
        from importlib import import_module
        from pathlib import Path

        found = {"harness": "none", "package": "none", "torch": "none", "python": platform.python_version()}
        for name in ("torch", "harness"):
            try:
                found[name] = str(import_module(name).__version__)
            except (ImportError, AttributeError):
                continue
        try:
            folder = Path(str(import_module("harness").__file__)).resolve().parent
            found["package"] = str(import_module("harness.evaluation.certificate").hash_trusted_code(folder))
        except (ImportError, AttributeError, OSError):
            found["package"] = "unknown"
        return found

    return read


def read_own_versions() -> Versions:
    return Versions(**make_version_reader()())
