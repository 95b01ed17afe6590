"""Measures free memory, and makes the evaluator's oversized CPU allocations fail before Linux kills it."""

import ctypes
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from harness.hardware.host import available_memory_bytes
from harness.sandbox.worker_process import WorkerLimits

USABLE_SHARE = 0.9  # of free memory; the rest is for fragmentation and other processes
MAX_WORKER_BYTES = 16 << 30
WORKER_SHARE = 0.6  # of the memory that is free
# Messages of torch on a CPU, CUDA, cuBLAS, and our shared memory on a CPU and on a GPU.
NO_MEMORY = (
    "can't allocate memory", "CUDA error: out of memory", "CUDA out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
    "bytes of shared memory are needed", "failed with 2: out of memory",
)  # fmt: skip
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEPT_FREE_BYTES = 256 << 20
MAPPED_BYTES = 32 << 20  # larger blocks are mapped separately, and unmapped when freed


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Free bytes. `is_shared` means that device and host share one memory."""

    device_bytes: int
    host_bytes: int
    is_shared: bool = False

    def holds(self, device_bytes: int, host_bytes: int) -> bool:
        if self.is_shared:
            return device_bytes + host_bytes <= USABLE_SHARE * min(self.device_bytes, self.host_bytes)
        return device_bytes <= USABLE_SHARE * self.device_bytes and host_bytes <= USABLE_SHARE * self.host_bytes


def count_free_bytes(device: torch.device) -> int:
    """Includes torch's cache."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return available_memory_bytes()


def limit_worker(device: torch.device, arena_bytes: int) -> WorkerLimits:
    """A GPU gets no limit: CUDA contexts reserve too much address space."""
    if device.type == "cuda":
        return WorkerLimits(memory_bytes=None)
    usable = min(MAX_WORKER_BYTES, int(available_memory_bytes() * WORKER_SHARE))
    return WorkerLimits(memory_bytes=usable + arena_bytes)


def keep_freed_memory() -> None:
    """Keep freed memory mapped (glibc): mapping it again takes longer than comparing outputs."""
    with suppress(AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        allocator.mallopt(_M_TRIM_THRESHOLD, KEPT_FREE_BYTES)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(words in str(error) for words in NO_MEMORY):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)


@contextmanager
def limit_memory(device: torch.device) -> Iterator[None]:
    """Allocations above the free memory fail inside the context."""
    if device.type == "cuda":
        yield
        return
    with _ADDRESS_SPACE.limited():
        yield


class _AddressSpace:
    """The first concurrent thread lowers RLIMIT_AS, the last restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._usual = resource.RLIM_INFINITY

    @contextmanager
    def limited(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._lower()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._set(self._usual)

    def _lower(self) -> None:
        self._usual, hard = resource.getrlimit(resource.RLIMIT_AS)
        mapped_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        wanted = mapped_bytes + int(available_memory_bytes() * USABLE_SHARE)
        limits = [limit for limit in (wanted, self._usual, hard) if limit != resource.RLIM_INFINITY]
        self._set(min(limits))

    def _set(self, soft: int) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (soft, resource.getrlimit(resource.RLIMIT_AS)[1]))


_ADDRESS_SPACE = _AddressSpace()
