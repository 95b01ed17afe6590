"""Random weights that do not depend on how a constructor allocates them.

Modules are constructed under a seed with the GPU as torch's default device. `torch.Tensor(...)` ignores the default, so
its weights would come from the host's generator, and differ from those of a reference that uses `torch.empty(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

METHODS = "uniform_ normal_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_"
FILLING = frozenset(getattr(torch.Tensor, name) for name in METHODS.split())


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
