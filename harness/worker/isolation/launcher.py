"""Runs a command in a sandbox: `... launch LAYERS COMMAND...`, where LAYERS is JSON.

It exits with the command's exit code, or 125 if a requested layer is not available.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from harness.worker.isolation import namespaces
from harness.worker.isolation.landlock import Access
from harness.worker.isolation.linux import (
    MOUNT_ATTR_NOSUID,
    MOUNT_ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    detach_mount,
    mount,
    pivot_root,
    set_mount_attributes,
    shell_status,
    wait_for,
)

CANNOT = 125


def main() -> NoReturn:
    layers, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        status = _run_in_private_root(layers, command) if layers["private_root"] else _become(layers, command)
    except OSError as error:
        print(f"the sandbox cannot be set up: {error}", file=sys.stderr)
        status = CANNOT
    sys.stderr.flush()
    os._exit(status)


def _run_in_private_root(layers: dict[str, Any], command: list[str]) -> int:
    """Fork twice: this process waits, PID 1 of the namespaces reaps orphans, and the third becomes the command."""
    namespaces.enter_namespaces_for_many()
    namespaces.die_with_parent()
    first = os.fork()
    if first:
        return shell_status(os.waitpid(first, 0)[1])
    enter_private_root(layers)
    if layers["for_workers"]:
        namespaces.drop_root()
    namespaces.drop_privileges()
    namespaces.die_with_parent()  # a change of user resets this
    child = os.fork()
    return wait_for(child) if child else _become(layers, command)


def _become(layers: dict[str, Any], command: list[str]) -> NoReturn:
    namespaces.die_with_parent()
    if layers["runs_problems"]:
        namespaces.restrict_evaluator()
    elif not layers["for_workers"]:
        _seal(layers)
    os.execvp(command[0], command)


def _seal(layers: dict[str, Any]) -> None:
    has_own_root = layers["private_root"]
    if not has_own_root and layers["writable"]:
        os.environ["TMPDIR"] = layers["writable"][0]
    namespaces.apply_limits(namespaces.Limits(**layers["limits"]), shares_user=not has_own_root)
    namespaces.drop_privileges()
    access = Access(
        readable=(*layers["readable"], "/proc"),
        writable=(*layers["writable"], *(("/tmp",) if has_own_root else ())),
        devices=tuple(layers["devices"]),
        listable=("/",) if has_own_root else (),
    )
    if layers["filters"]:
        namespaces.restrict_calls(access, has_own_root=has_own_root)


BASE = "/tmp"  # exists everywhere; the new root is mounted over it
OLD = "/.old"
DEVICE_LINKS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}  # below /proc/self


def enter_private_root(layers: dict[str, Any]) -> None:
    """Pivot to a new root with the layers' paths that exist; keep the working folder if it is among them. Raises
    OSError.
    """
    folder = os.getcwd()  # noqa: PTH109 - a text for chdir
    # Resolve links before pivoting: absolute ones would point into the new root afterwards.
    sources = {path: os.path.realpath(path) for path in (*layers["readable"], *layers["writable"], *layers["devices"])}
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("root", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m")
    os.mkdir(BASE + OLD)  # noqa: PTH102
    pivot_root(BASE, BASE + OLD)
    os.chdir("/")
    _fill(layers, sources)
    detach_mount(OLD)
    os.rmdir(OLD)  # noqa: PTH106
    set_mount_attributes("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, recursive=False)
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.chdir(folder)


def _fill(layers: dict[str, Any], sources: dict[str, str]) -> None:
    _make_folder("/tmp")
    mount("tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={layers['temporary_bytes']}")
    _make_folder("/dev/shm")
    # Mount a /proc of this PID namespace. Linux permits no new one if parts of the old one are masked.
    _make_folder("/proc")
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except PermissionError:
        mount(OLD + "/proc", "/proc", None, MS_BIND | MS_REC)
    if not layers["for_workers"]:
        set_mount_attributes("/proc", MOUNT_ATTR_RDONLY, recursive=True)
    for path in _outer_first(layers["readable"]):
        _bind(sources[path], path, attributes=MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID)
    for path in layers["devices"]:
        _bind(sources[path], path, attributes=MOUNT_ATTR_NOSUID)
    for path in layers["writable"]:
        _bind(sources[path], path, attributes=MOUNT_ATTR_NOSUID)
    for name, target in DEVICE_LINKS.items():
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")  # noqa: PTH211


def _bind(source: str, path: str, *, attributes: int) -> None:
    where = Path(OLD + source)
    if not where.exists():
        return
    if where.is_dir():
        _make_folder(path)
    else:
        _make_folder(os.path.dirname(path))  # noqa: PTH120
        Path(path).touch()
    mount(str(where), path, None, MS_BIND | MS_REC)
    set_mount_attributes(path, attributes, recursive=True)


def _make_folder(path: str) -> None:
    os.makedirs(path, mode=0o755, exist_ok=True)  # noqa: PTH103


def _outer_first(paths: Iterable[str]) -> list[str]:
    return sorted(set(paths), key=lambda path: path.count("/"))
