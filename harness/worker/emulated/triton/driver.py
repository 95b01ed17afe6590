"""Triton's GPU driver interface, which describes the target and launches nothing, and the choice of configurations."""

import random
import re
import time
from collections.abc import Callable
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver

from harness.worker.emulated.link import EmulatorLink

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


TRIED_S = 60.0  # for configurations that do not compile


def choose_by_order(link: EmulatorLink) -> None:
    prune = Autotuner.prune_configs

    def choose(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        configs, order = list(prune(self, kwargs)), link.setting("order")
        if order == "descending":
            configs.reverse()
        elif order == "random":
            random.Random(link.setting("seed")).shuffle(configs)
        return configs[:2]

    _replace(choose, _run_once)


def choose_compilable(*, compiles_all: bool) -> None:
    prune, compiled, began_s = Autotuner.prune_configs, [False], [0.0]

    def choose(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        compiled[0], began_s[0] = False, time.monotonic()
        return list(prune(self, kwargs))

    def compile_first(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
        if compiled[0] or time.monotonic() - began_s[0] > TRIED_S:
            return [2.0] * 3
        call()
        compiled[0] = not compiles_all
        return [1.0] * 3

    _replace(choose, compile_first)


def _replace(choose: Callable[..., list[Any]], benchmark: Callable[..., list[float]]) -> None:
    """The candidate may define the benchmark function, too."""
    Autotuner.prune_configs = choose
    Autotuner.do_bench = property(lambda _: benchmark)


def _run_once(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
    call()
    return [1.0] * 3
