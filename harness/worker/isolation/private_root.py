"""A private root file system that holds only listed paths. Needs namespaces that permit mounts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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
)

BASE = "/tmp"  # exists everywhere; the new root is mounted over it
OLD = "/.old"
DEVICE_LINKS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}  # below /proc/self


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Missing paths are skipped. `temporary_bytes` limits /tmp."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    devices: tuple[str, ...]
    temporary_bytes: int


def enter_private_root(contents: Contents, *, can_write_proc: bool) -> None:
    """Pivot to the new root; keep the working folder if it exists there. Raises OSError."""
    folder = os.getcwd()  # noqa: PTH109 - a text for chdir
    # Resolve links before pivoting: absolute ones would point into the new root afterwards.
    sources = {path: os.path.realpath(path) for path in (*contents.readable, *contents.writable, *contents.devices)}
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("root", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m")
    os.mkdir(BASE + OLD)  # noqa: PTH102
    pivot_root(BASE, BASE + OLD)
    os.chdir("/")
    _fill(contents, sources, can_write_proc=can_write_proc)
    detach_mount(OLD)
    os.rmdir(OLD)  # noqa: PTH106
    set_mount_attributes("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, recursive=False)
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.chdir(folder)


def _fill(contents: Contents, sources: dict[str, str], *, can_write_proc: bool) -> None:
    _make_folder("/tmp")
    mount("tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={contents.temporary_bytes}")
    _make_folder("/dev/shm")
    _mount_processes(can_write=can_write_proc)
    for path in _outer_first(contents.readable):
        _bind(sources[path], path, attributes=MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID)
    for path in contents.devices:
        _bind(sources[path], path, attributes=MOUNT_ATTR_NOSUID)
    for path in contents.writable:
        _bind(sources[path], path, attributes=MOUNT_ATTR_NOSUID)
    for name, target in DEVICE_LINKS.items():
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")  # noqa: PTH211


def _mount_processes(*, can_write: bool) -> None:
    """Mount a /proc of this PID namespace. Linux permits no new one if parts of the old one are masked."""
    _make_folder("/proc")
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except PermissionError:
        mount(OLD + "/proc", "/proc", None, MS_BIND | MS_REC)
    if not can_write:
        set_mount_attributes("/proc", MOUNT_ATTR_RDONLY, recursive=True)


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
