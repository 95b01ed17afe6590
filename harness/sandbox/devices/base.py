from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from harness.hardware.gpus import GpuModel
from harness.sandbox.devices.arena import SharedArena
from harness.sandbox.memory_plan import Room

if TYPE_CHECKING:  # they import this package
    from harness.sandbox.arena_layout import Footprint
    from harness.sandbox.model_session import ModelSession
    from harness.sandbox.worker_client import WorkerClient


class Device(ABC):
    """`is_timed` is False where times mean nothing. If `is_emulated`, candidates see the GPU `target`. If it
    `has_contexts`, each process needs one, which takes long to create, and which an illegal access destroys. If it
    `replays_calls`, they run asynchronously on streams, the evaluator clocks them, and it can replay a recording. If it
    `keeps_references`, their memory remains in use for the next candidate.

    Peaks are measured with tensors of `peak_tensor_bytes`, and with square matrices of `matrix_size` in the
    `matrix_formats`. `context_bytes` is an estimate for an idle process.
    """

    is_emulated: ClassVar[bool] = False
    is_timed: ClassVar[bool] = True
    has_contexts: ClassVar[bool] = False
    replays_calls: ClassVar[bool] = False
    keeps_references: ClassVar[bool] = False
    input_slack_bytes: ClassVar[int] = 0  # for inputs at a place that a worker cannot guess
    peak_tensor_bytes: ClassVar[int]
    matrix_size: ClassVar[int]
    matrix_formats: ClassVar[tuple[str, ...]] = ("float32",)
    context_bytes: ClassVar[int] = 0
    target: GpuModel | None = None

    def __init__(self, name: str, torch_device: torch.device, memory_bytes: int | None) -> None:
        self.name = name
        self.torch_device = torch_device
        self._memory_bytes = memory_bytes
        self._cores = os.sched_getaffinity(0)
        self._flush_buffer: torch.Tensor | None = None

    @property
    @abstractmethod
    def chip(self) -> str: ...

    @property
    @abstractmethod
    def lock_name(self) -> str:
        """Name of the lock that prevents two measurements at once; empty without measurements."""

    @property
    def seen_type(self) -> str:
        return self.torch_device.type

    @property
    def seen_name(self) -> str:
        return self.name

    @property
    def replayer_cores(self) -> list[int]:
        return sorted(self._cores)

    @property
    @abstractmethod
    def evaluator_cores(self) -> set[int]:
        """Cores for the evaluator while a worker is timed."""

    def describe(self) -> Mapping[str, str]:
        return {}

    def describe_emulation(self, threads: int, call_s: float) -> dict[str, Any] | None:
        return None

    @abstractmethod
    def measure_room(self) -> Room:
        """Free memory that an evaluation may plan with."""

    @property
    def slice_bytes(self) -> int:
        """Memory for comparing a slice of two tensors and for flushing the cache."""
        return 0

    @abstractmethod
    def watch_peak(self) -> None: ...

    def read_peak(self) -> int | None:
        """Return the most memory in use since `watch_peak`, or None if unknown."""
        return None

    def count_own_bytes(self) -> int:
        """Memory of the device that this process has reserved; 0 on a CPU."""
        return 0

    def count_used_bytes(self) -> int:
        """Returns 0 on a CPU, where workers have their own limits."""
        return 0

    @abstractmethod
    def release_allocator_cache(self) -> None: ...

    def release_memory(self) -> None:
        self._flush_buffer = None
        self.release_allocator_cache()

    @abstractmethod
    def allocate(self, size_bytes: int) -> SharedArena: ...

    @abstractmethod
    def synchronize(self) -> None: ...

    @abstractmethod
    def check(self) -> None:
        """Raises RuntimeError if torch cannot use the device."""

    def find_loading_device(self) -> Device:
        """Return the device on which a candidate is loaded without a GPU."""
        return self

    def open_nvml(self) -> tuple[Any, Any] | None:
        return None

    def read_core_clocks_mhz(self, cores: set[int]) -> list[float]:
        """Return the clocks of the cores that compute a candidate's outputs."""
        return []

    @property
    def has_tf32(self) -> bool:
        return False

    def flush_cache(self, *, once: bool = False) -> None:
        """Overwrite a buffer of twice the last-level cache, or with `once` of its size. A GPU does it
        asynchronously.
        """
        if self._flush_buffer is None:
            elements = 2 * self.cache_bytes() // 4
            self._flush_buffer = torch.zeros(elements, dtype=torch.float32, device=self.torch_device)
        written = self._flush_buffer[: self._flush_buffer.numel() // 2] if once else self._flush_buffer
        written.add_(1.0)

    @abstractmethod
    def reset_persisting_lines(self) -> None: ...

    @abstractmethod
    def open_session(
        self, client: WorkerClient, arena: SharedArena, footprint: Footprint, *, keeps_on_host: bool
    ) -> AbstractContextManager[ModelSession]: ...

    def await_quiet(self, limit_s: float) -> bool:
        """Wait until no other process uses the GPU. Returns False if one still does after `limit_s`."""
        return True

    @abstractmethod
    def cache_bytes(self) -> int: ...
