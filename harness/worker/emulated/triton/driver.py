"""Triton's GPU driver interface: it describes the target and launches nothing."""

from __future__ import annotations

import re
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

_REGISTERS = re.compile(rb"\x04\x2f\x08\x00.{4}(.{4})", re.DOTALL)  # the attribute REGCOUNT of a cubin
_MOST_REGISTERS, _MOST_THREADS = 255, 1024


class _Utilities:
    def __init__(self, target: dict[str, Any]) -> None:
        self._properties = {
            "max_shared_mem": target["shared_memory_per_block_optin"],
            "max_num_regs": target["regs_per_multiprocessor"],
            "multiprocessor_count": target["multi_processor_count"],
            "warpSize": target["warp_size"],
            "sm_clock_rate": target["clock_rate"],
            "mem_clock_rate": target["clock_rate"],
            "mem_bus_width": 4096,
        }

    def get_device_properties(self, _: int = 0) -> dict[str, Any]:
        return dict(self._properties)

    def load_binary(self, name: str, binary: bytes, _shared: int, _device: int) -> tuple[str, str, int, int, int]:
        """Return module, function, registers, spilled registers and the maximum threads of a block."""
        registers = max((int.from_bytes(one, "little") for one in _REGISTERS.findall(binary)), default=_MOST_REGISTERS)
        fitting = self._properties["max_num_regs"] // max(registers, 1)
        return name, name, registers, 0, min(_MOST_THREADS, fitting)

    def unload_module(self, _: str) -> None: ...


class TargetDriver:
    def __init__(self, target: dict[str, Any]) -> None:
        self.utils = _Utilities(target)
        self._target = GPUTarget("cuda", 10 * target["major"] + target["minor"], target["warp_size"])

    def get_current_target(self) -> GPUTarget:
        return self._target

    def launcher_cls(self, *_: Any) -> Any:
        return lambda *_, **__: None

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _: int) -> None: ...

    def get_current_stream(self, _: int = 0) -> int:
        return 0

    def get_device_capability(self, _: int = 0) -> tuple[int, int]:
        return int(self._target.arch) // 10, int(self._target.arch) % 10

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(0, dtype=torch.int32)

    def clear_cache(self, _: Any) -> None: ...


def activate(target: dict[str, Any]) -> None:
    driver.set_active(TargetDriver(target))
