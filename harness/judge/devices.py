"""The devices that candidates are judged on, as the judge sees them: shared memory, synchronisation, cache flushing."""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import statistics
import time
from math import prod
from pathlib import Path
from typing import Any

import torch

from harness.domain import EMULATED, DeviceError, Language
from harness.emulate import Target, find_target
from harness.judge.memory import available_memory_bytes
from harness.wire import TensorSpec, device_memory, storage_bytes

MINIMUM_CACHE_BYTES = 32 << 20
IDLE_FLUSHES = 10
CORES_TO_SPARE = 4  # one for this process, one for a worker, and for what else there is to do
KERNEL_SHARE = 0.8  # of the time of a call: what takes longer is stopped by the emulator, which can name the kernel


class SharedArena:
    """Memory that the judge and one worker both map. `descriptor` is what the worker gets; close it when done."""

    def __init__(self, size_bytes: int, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # makes the primary context current
            index = device.index or 0
            self._address, self.descriptor, self.size_bytes = device_memory.allocate_shareable(size_bytes, index)
        else:
            self.size_bytes = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
            self._map_memory_file()

    def _map_memory_file(self) -> None:
        """Raises DeviceError if that much memory is not to be had: pages are only taken when they are first written,
        and by then it would be too late to say so."""
        room_bytes = available_memory_bytes()
        if self.size_bytes > room_bytes:
            raise DeviceError(f"{self.size_bytes} bytes of shared memory are needed, and only {room_bytes} are left")
        try:
            self.descriptor = os.memfd_create("harness-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError as error:
            raise DeviceError(f"no shared memory is to be had: {error}") from error
        try:
            os.ftruncate(self.descriptor, self.size_bytes)
            self._mapped = mmap.mmap(self.descriptor, self.size_bytes)
            self._keep_size()
        except (OSError, ValueError) as error:
            os.close(self.descriptor)
            raise DeviceError(f"{self.size_bytes} bytes of shared memory are not to be had: {error}") from error

    def _keep_size(self) -> None:
        """Seals the size: a worker that shrank the file would crash the judge at its next access."""
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def bytes_view(self, offset: int, size_bytes: int) -> torch.Tensor:
        """A stretch as uint8 on the device. The caller has checked that it lies inside."""
        if offset + size_bytes > self.size_bytes:
            raise DeviceError(f"bytes {offset} to {offset + size_bytes} lie outside an arena of {self.size_bytes}")
        if size_bytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=self._device)
        if self._device.type == "cuda":
            holder = device_memory.DeviceBytes(self._address + offset, size_bytes)
            return torch.as_tensor(holder, device=self._device)
        return torch.frombuffer(self._mapped, dtype=torch.uint8, count=size_bytes, offset=offset)

    def view(self, spec: TensorSpec) -> torch.Tensor:
        """The tensor at `spec`, sharing the memory."""
        dtype = getattr(torch, spec.dtype)
        if prod(spec.shape) == 0:
            return torch.empty_strided(spec.shape, spec.stride, dtype=dtype, device=self._device)
        flat = self.bytes_view(spec.offset, storage_bytes(spec)).view(dtype)
        return flat.as_strided(spec.shape, spec.stride)

    def synchronize(self) -> None:
        """Waits for the judge's own work on the memory; on a CPU it is done already."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def close(self) -> None:
        if self._device.type == "cuda":
            device_memory.free(self._address, self.size_bytes, self.descriptor)
        else:
            os.close(self.descriptor)  # the mapping itself goes when the last tensor over it does

    def __enter__(self) -> SharedArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class JudgeDevice:
    """One device: where inputs are made, the truth computed and the cache flushed. `name` is "cpu", "cuda:N", or
    "emulated": the CPU, where candidates see the GPU that is the `target`."""

    def __init__(self, name: str, gpu: str | None = None) -> None:
        """`gpu` names what is emulated (None: the usual). Raises DeviceError for one that cannot be."""
        self.name = name
        self.target = _find_target(gpu) if name == EMULATED else None
        self.torch_device = torch.device("cpu" if name == EMULATED else name)
        self._cores = os.sched_getaffinity(0)
        self._flush_buffer: torch.Tensor | None = None
        self.idle_flush_us: float | None = None

    @property
    def is_cuda(self) -> bool:
        return self.torch_device.type == "cuda"

    @property
    def is_emulated(self) -> bool:
        return self.target is not None

    @property
    def seen_type(self) -> str:
        """The type of device that outputs lie on, as the worker sees it."""
        return "cuda" if self.is_emulated else self.torch_device.type

    @property
    def waking_core(self) -> int | None:
        """Where a stopped worker is let go on: its parent, which lets it, is awake there. To wake another core takes
        some hundred microseconds on a virtual machine, and not evenly many. None: there is no core to spare for that,
        nor for waiting without sleep; on a CPU the cores are what is measured."""
        return max(self._cores) if self.is_cuda and len(self._cores) >= CORES_TO_SPARE else None

    @property
    def judge_cores(self) -> set[int]:
        """Where the judge is to run while it times, out of the way: on a CPU away from those that the workers' own
        threads are bound to, for it wakes their main thread where it runs itself."""
        return self._cores - {self.waking_core} if self.is_cuda else {min(self._cores)}

    def describe_emulation(self, threads: int, call_s: float) -> dict[str, Any] | None:
        """For a worker: the properties of its GPU, by the names that CUDA has for them, and the emulator's settings.
        None for a device that is what it is."""
        if self.target is None:
            return None
        settings = {"order": "ascending", "seed": 0, "threads": threads, "time_limit_s": KERNEL_SHARE * call_s}
        return {"target": _describe_properties(self.target), "settings": settings}

    def allocate(self, size_bytes: int) -> SharedArena:
        return SharedArena(size_bytes, self.torch_device)

    def synchronize(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize(self.torch_device)

    def flush_cache(self, *, once: bool = False) -> float | None:
        """Writes twice the last-level cache, so that the next call finds its data in memory. On a GPU lines that were
        marked as persisting lose that, and it returns how long the device took, in microseconds. `once`: on a CPU, the
        size of the cache is enough."""
        if self._flush_buffer is None:
            elements = 2 * self.cache_bytes() // 4
            self._flush_buffer = torch.zeros(elements, dtype=torch.float32, device=self.torch_device)
        if not self.is_cuda:
            written = self._flush_buffer[: self._flush_buffer.numel() // 2] if once else self._flush_buffer
            written.add_(1.0)
            return None
        device_memory.reset_persisting_cache()
        with torch.cuda.device(self.torch_device):
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            began.record()
            self._flush_buffer.add_(1.0)
            ended.record()
            ended.synchronize()
        return float(began.elapsed_time(ended)) * 1e3

    def time_flush_us(self) -> float:
        """Flushes the cache; how long that took, waiting for whatever else runs on the device included."""
        self.synchronize()
        began_ns = time.perf_counter_ns()
        self.flush_cache()
        return (time.perf_counter_ns() - began_ns) / 1e3

    def learn_idle_flush(self) -> None:
        """Measures once what a flush takes while no candidate runs: how to tell later that something else does."""
        if self.is_cuda and self.idle_flush_us is None:
            times = [self.flush_cache() for _ in range(IDLE_FLUSHES)]
            self.idle_flush_us = statistics.median(time_us for time_us in times if time_us is not None)

    def cache_bytes(self) -> int:
        if self.is_cuda:
            return max(int(torch.cuda.get_device_properties(self.torch_device).L2_cache_size), MINIMUM_CACHE_BYTES)
        return max(_last_level_cache_bytes(), MINIMUM_CACHE_BYTES)


def open_device(wanted: str, language: Language, gpu: str | None = None) -> JudgeDevice | None:
    """The device for a language: `auto` takes the CPU for cpp, and for cuda a GPU, emulated where there is none.
    `gpu` is what is emulated. None: what was asked for is no device for the language.

    Raises DeviceError if a device was named that is not here.
    """
    if wanted == "auto":
        gpu_device = "cuda:0" if torch.cuda.is_available() else EMULATED
        wanted = gpu_device if language == "cuda" else "cpu"
    kind = wanted.split(":")[0]
    if not re.fullmatch(r"cpu|emulated|cuda(:\d+)?", wanted):
        raise DeviceError(f"no device is called {wanted!r}; expected auto, cpu, emulated or cuda:N")
    if (kind == "cpu") != (language == "cpp"):
        return None
    if kind == "cuda":
        wanted = wanted if ":" in wanted else "cuda:0"
        count = torch.cuda.device_count()
        if int(wanted.split(":")[1]) >= count:
            raise DeviceError(f"{wanted} was asked for, but this machine has {count} usable GPUs")
    return JudgeDevice(wanted, gpu)


def _find_target(gpu: str | None) -> Target:
    return find_target() if gpu is None else find_target(gpu)


def _describe_properties(target: Target) -> dict[str, Any]:
    major, minor = target.compute_capability
    return {
        "name": f"NVIDIA {target.name}",
        "major": major,
        "minor": minor,
        "total_memory": target.total_memory_bytes,
        "multi_processor_count": target.multiprocessors,
        "warp_size": target.warp_size,
        "max_threads_per_block": target.max_threads_per_block,
        "max_threads_per_multi_processor": target.max_threads_per_multiprocessor,
        "regs_per_multiprocessor": target.registers_per_block,
        "shared_memory_per_block": target.static_shared_bytes_per_block,
        "shared_memory_per_block_optin": target.max_shared_bytes_per_block,
        "shared_memory_per_multiprocessor": target.shared_bytes_per_multiprocessor,
        "L2_cache_size": target.l2_bytes,
        "clock_rate": target.clock_khz,
        "is_integrated": 0,
        "is_multi_gpu_board": 0,
    }


def find_gpu(device: JudgeDevice) -> tuple[Any, Any]:
    """NVML and its handle of a GPU. Raises ImportError without the library, its own NVMLError where it does not know
    the GPU."""
    import pynvml

    pynvml.nvmlInit()
    uuid = str(torch.cuda.get_device_properties(device.torch_device).uuid)
    return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")


def _last_level_cache_bytes() -> int:
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[text[-1]])
    return max(sizes)
