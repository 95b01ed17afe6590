"""Connects to a Ray cluster, and compares the versions of its nodes."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from harness.domain import DeviceError, UsageError
from harness.shipped import name_install

NAMESPACE = "harness"
LOCAL = "local"  # address: a cluster of this machine alone, for this command
CONNECT_S = 5.0  # and again for an answer
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
FRAME_HEAD_BYTES, SETTINGS = 9, b"\4"
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

    def explain_difference(self, other: Versions) -> str:
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
            _reach(_resolve(address))
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


def _reach(address: str) -> None:
    """Raise OSError soon, since Ray would try for a minute. Both ends of HTTP/2, Ray's protocol, begin with a settings
    frame.
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ValueError("expected HOST:PORT")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as line:
        line.sendall(PREFACE)
        if "RAY_USE_TLS" not in os.environ and line.recv(FRAME_HEAD_BYTES)[3:4] != SETTINGS:
            raise ConnectionError(f"{address} answers, but is no Ray cluster")


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
