"""Facts about this machine's processor, GPUs (without importing torch), build of torch, and memory in bytes (the
minimum of the machine's and the limits of this process's control groups). Linux only.
"""

import ctypes
import os
import platform
import re
import runpy
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from harness.domain import DeviceError, HarnessError


def cpu_name() -> str:
    return _read_cpu_fact("model name") or platform.processor() or sys.platform


def read_cpu_flags() -> str:
    return _read_cpu_fact("flags") or _read_cpu_fact("Features")


def _read_cpu_fact(name: str) -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def count_cores() -> int:
    """Count those that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    version: str
    cuda: str | None


@cache
def read_torch_build() -> TorchBuild:
    """Raises HarnessError."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise HarnessError("torch is not installed: pip install torch")
    facts = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    return TorchBuild(version=str(facts["__version__"]), cuda=facts["cuda"])


PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    available_bytes: int
    shared_bytes: int


def available_memory_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int:
    return read_memory_state(proc, cgroup).available_bytes


def read_memory_state(proc: Path = PROC, cgroup: Path = CGROUP) -> MemoryState:
    """Page cache of a control group counts as available: Linux reclaims it first."""
    meminfo = (proc / "meminfo").read_text()
    headrooms = [max(limit_bytes - used_bytes, 0) for limit_bytes, used_bytes in _read_control_groups(proc, cgroup)]
    available_bytes = min([_read_meminfo(meminfo, "MemAvailable"), *headrooms])
    return MemoryState(available_bytes=available_bytes, shared_bytes=_read_meminfo(meminfo, "Shmem"))


def total_memory_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int:
    limits = [limit_bytes for limit_bytes, _ in _read_control_groups(proc, cgroup)]
    return min([_read_meminfo((proc / "meminfo").read_text(), "MemTotal"), *limits])


def count_oom_kills() -> int | None:
    """Count OOM kills on this machine since boot; None if unknown."""
    with suppress(OSError):
        found = re.search(r"^oom_kill (\d+)$", Path("/proc/vmstat").read_text(), re.MULTILINE)
        return None if found is None else int(found[1])
    return None


def _read_meminfo(text: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise DeviceError(f"/proc/meminfo has no {name} line: this version of Linux is too old")
    return int(found[1]) * 1024


def _read_control_groups(proc: Path, cgroup: Path) -> list[tuple[int, int]]:
    """Return (limit, used) bytes of every control group that limits this process's memory."""
    try:
        groups = (proc / "self" / "cgroup").read_text()
    except FileNotFoundError:
        return []
    found = [_read_limit(*files) for files in _list_group_files(groups, cgroup)]
    return [limit for limit in found if limit is not None]


_CGROUP_FILES = {  # by version: limit, use, and the name of the page cache in memory.stat
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


@cache
def _list_group_files(groups: str, cgroup: Path) -> tuple[tuple[Path, Path, Path, str], ...]:
    """Return limit, use, memory.stat and the name of the page cache there, for each group and its ancestors. A
    container may see only some of them. Kept, since memory is read before every call of a reference.
    """
    found = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        version, roots = (1, (cgroup / "memory",)) if controllers else (2, (cgroup, cgroup / "unified"))
        limit, use, cached = _CGROUP_FILES[version]
        for folder in _list_ancestors(path, roots):
            found.append((folder / limit, folder / use, folder / "memory.stat", cached))
    return tuple(found)


def _list_ancestors(path: str, roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        folder = root / path.lstrip("/")
        while folder.is_relative_to(root):
            yield folder
            folder = folder.parent


def _read_limit(limit: Path, use: Path, statistics: Path, cached: str) -> tuple[int, int] | None:
    try:
        most = limit.read_text().strip()
        if most == "max" or int(most) >= _UNLIMITED_BYTES:
            return None
        used_bytes = int(use.read_text())
        counts = dict(line.split() for line in statistics.read_text().splitlines())
    except OSError:
        return None
    return int(most), used_bytes - int(counts.get(cached, 0))


# CUdevice_attribute
_MULTIPROCESSORS, _L2_BYTES = 16, 38
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_SHARED_BYTES_PER_MULTIPROCESSOR, _SHARED_BYTES_PER_BLOCK = 81, 97
_NAME_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProperties:
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    multiprocessors: int
    l2_bytes: int
    shared_bytes_per_multiprocessor: int
    shared_bytes_per_block: int

    @property
    def architecture(self) -> str:
        """Has the form of TORCH_CUDA_ARCH_LIST."""
        major, minor = self.capability
        return f"{major}.{minor}"


def list_gpus() -> tuple[GpuProperties, ...]:
    """Empty without a driver that runs torch's CUDA version."""
    driver = _open_driver()
    count = ctypes.c_int()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    return tuple(_read_properties(driver, index) for index in range(count.value))


@cache
def _open_driver() -> ctypes.CDLL | None:
    """Return None if torch cannot use it; CUDA runs on drivers of the same major version or a later one."""
    cuda, version = read_torch_build().cuda, ctypes.c_int()
    if cuda is None:
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if driver.cuInit(0) != 0 or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return driver if version.value // 1000 >= int(cuda.partition(".")[0]) else None


def _read_properties(driver: ctypes.CDLL, index: int) -> GpuProperties:
    device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, _NAME_BYTES, device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

    def read(attribute: int) -> int:
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        return value.value

    return GpuProperties(
        name=name.value.decode(),
        capability=(read(_CAPABILITY_MAJOR), read(_CAPABILITY_MINOR)),
        memory_bytes=memory.value,
        multiprocessors=read(_MULTIPROCESSORS),
        l2_bytes=read(_L2_BYTES),
        shared_bytes_per_multiprocessor=read(_SHARED_BYTES_PER_MULTIPROCESSOR),
        shared_bytes_per_block=read(_SHARED_BYTES_PER_BLOCK),
    )
