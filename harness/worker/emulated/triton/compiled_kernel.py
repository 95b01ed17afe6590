"""Result of a launch or warm-up of an interpreted kernel, in place of Triton's compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from triton.runtime.driver import driver

MOST_REGISTERS = 255  # of a thread
COMPILED = ("asm", "src", "hash", "module", "function", "kernel", "metadata_group", "packed_metadata", "run")


class InterpretedKernel:
    """Nothing was compiled: resource use is the maximum for a block of this size."""

    n_spills = 0

    def __init__(self, function: Any, launched: dict[str, Any], num_warps: int, report: Callable[..., None]) -> None:
        limits = driver.active.utils.get_device_properties(0)
        threads = num_warps * limits["warpSize"]
        self.name = function.fn.__name__
        self.n_regs = min(MOST_REGISTERS, limits["max_num_regs"] // threads)
        self.n_max_threads = threads
        self.metadata = SimpleNamespace(name=self.name, shared=limits["max_shared_mem"], num_warps=num_warps)
        self._function, self._launched, self._report = function, launched, report

    def __getattr__(self, name: str) -> Any:
        if name in COMPILED:
            self._report(
                "uncovered", f"{name} of a compiled kernel is not covered by the emulated device", decides=False
            )
        raise AttributeError(f"a kernel in Triton's interpreter has no {name}")

    def _init_handles(self) -> None: ...

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def run(*args: Any, stream: Any = None) -> None:
            names = self._function.arg_names
            missing = {name: self._launched[name] for name in names[len(args) :] if name in self._launched}
            self._function.run(*args, grid=grid, warmup=False, **missing)

        return run
