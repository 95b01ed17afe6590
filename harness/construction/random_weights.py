"""Makes random weights independent of how a constructor allocates them.

Modules are constructed under a seed with the GPU as torch's default device. `torch.Tensor(...)` ignores the
default, so its weights would differ from those of `torch.empty(...)`. Code that draws from a host generator, or
passes its tensors to numpy, runs with the host as the default instead.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy
import torch
from torch.overrides import TorchFunctionMode

T = TypeVar("T")
HOST = torch.device("cpu")
# In torch's messages about generators, numpy, operands, pinned memory, and operators that a GPU does not have.
NEEDS_HOST = re.compile(r"device type|same device|CPU tensors|not implemented for|'CUDA' backend")
METHODS = "uniform_ normal_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_"
FILLING = frozenset(getattr(torch.Tensor, name) for name in METHODS.split())


def run_with_default(device: torch.device, run: Callable[[torch.device], T]) -> T:
    """Run again with the host as default device if necessary."""
    with keep_default_dtype():
        try:
            return run(device)
        except Exception as error:
            if device.type != "cuda" or not NEEDS_HOST.search(str(error)):
                raise
        return run(HOST)


@contextmanager
def keep_default_dtype() -> Iterator[None]:
    usual = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed torch (the host and `device`), `random` and numpy."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


class DrawOnDevice(TorchFunctionMode):
    """Fills tensors in host memory with the numbers that tensors on `device` would get."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = dict(kwargs or {})
        initialises = getattr(func, "__module__", "") == torch.nn.init.__name__  # passes its tensor by name
        if (func not in FILLING and not initialises) or options.get("generator") is not None:
            return func(*args, **options)
        first, *others = args or (options.pop("tensor", None),)
        if not isinstance(first, torch.Tensor) or first.device.type != "cpu":
            return func(first, *others, **options)
        drawn = func(torch.empty_like(first, device=self._device, requires_grad=False), *others, **options)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not initialises):
            return first.copy_(drawn)
