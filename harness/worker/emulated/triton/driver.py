"""The driver that Triton asks about the GPU: it describes the target, and launches nothing."""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver


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


class TargetDriver:
    def __init__(self, target: dict[str, Any]) -> None:
        self.utils = _Utilities(target)
        self._target = GPUTarget("cuda", 10 * target["major"] + target["minor"], target["warp_size"])

    def get_current_target(self) -> GPUTarget:
        return self._target

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
