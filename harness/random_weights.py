"""Random weights that do not depend on how a constructor allocates them.

Modules are constructed under a seed with the GPU as torch's default device. `torch.Tensor(...)` ignores the default, so
its weights would come from the host's generator, and differ from those of a reference that uses `torch.empty(...)`.

Weights that constructors fill with a constant (of a fresh norm, a bias, a gate, a layer scale) hide the work that uses
them: a program could leave it out, or contain the constant. Reference, baseline and candidate get other values as soon
as such a weight is part of a module, so a constructor may pack them. The values depend on the seed and the constant
alone, so names and shapes need not match.

Code that draws from a generator of the host, or hands its tensors to numpy, fails with the GPU as the default device;
it runs with the host as the default instead.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

T = TypeVar("T")
HOST = torch.device("cpu")
# In torch's messages about generators, numpy, operands, pinned memory, and operators that a GPU does not have.
NEEDS_HOST = re.compile(r"device type|same device|CPU tensors|not implemented for|'CUDA' backend")
METHODS = "uniform_ normal_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_"
FILLING = frozenset(getattr(torch.Tensor, name) for name in METHODS.split())
Kind = tuple[int, float]  # number of elements, and the value of all
PERIOD = 65_537
SMALLEST = 1e-3  # of a constant; smaller ones, but 0, stay: the outputs may not show what they scale
SAME_CONSTANT = 1e-4  # relative; a program may compute a constant in another way
STATISTICS = ("running_mean", "running_var")  # of norms: the only weights without gradients that are replaced


def run_with_default(device: torch.device, run: Callable[[torch.device], T]) -> T:
    """`run` is given the default device, and called again if that has to be the host."""
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
    """Torch's of the host and of `device`, and those of `random` and numpy."""
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


class ConstantWeights:
    """`kinds`: the reference's, None: all. A single 1 stays: programs take such factors as Python numbers."""

    def __init__(self, seed: int, kinds: Collection[Kind] | None = None) -> None:
        self._seed = seed
        self._kinds = kinds
        self._drawn: dict[float, Tensor] = {}

    def _draw(self, constant: float) -> Tensor:
        """For 0 values of both signs between a quarter and three quarters, else up to half as much more or less."""
        if constant not in self._drawn:
            draws = torch.rand(3, PERIOD, generator=torch.Generator("cpu").manual_seed(self._seed), device="cpu")
            signs = torch.where(draws[0] < 0.5, -1.0, 1.0)
            self._drawn[constant] = constant * (0.5 + draws[2]) if constant else signs * (0.25 + 0.5 * draws[1])
        return self._drawn[constant]

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Replaces the constants of each weight and module when it becomes part of another."""
        if self._kinds is not None and not self._kinds:
            yield
            return
        with ExitStack() as hooks:
            hooks.enter_context(torch_module.register_module_parameter_registration_hook(self._take_parameter))
            hooks.enter_context(torch_module.register_module_module_registration_hook(self._take_module))
            yield

    def replace_in(self, module: nn.Module) -> None:
        for weight in _list_weights(module):
            self._replace(weight)

    def list_kinds(self, module: nn.Module) -> tuple[Kind, ...]:
        """Of the weights that have been replaced."""
        found = ((weight.numel(), self._find_drawn(weight)) for weight in _list_weights(module))
        return tuple(dict.fromkeys((size, value) for size, value in found if value is not None))

    def _take_parameter(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if isinstance(parameter, nn.Parameter) and parameter.requires_grad:
            self._replace(parameter)

    def _take_module(self, module: nn.Module, name: str, part: nn.Module | None) -> None:
        if isinstance(part, nn.Module):
            self.replace_in(part)

    def _replace(self, parameter: Tensor) -> None:
        value = _find_constant(parameter)
        if value is not None and self._find_drawn(parameter) is not None:
            return  # a single one, replaced before
        if value is not None and self._kinds is not None:
            value = _find_kind(parameter, value, self._kinds)
        if value is None:
            return
        with torch.inference_mode() if parameter.is_inference() else nullcontext():
            for part in torch.split(parameter.detach().view(-1), PERIOD * 64):
                drawn = self._draw(value).to(part.device)
                part.copy_(drawn.repeat(-(-part.numel() // PERIOD))[: part.numel()])

    def _find_drawn(self, parameter: Tensor) -> float | None:
        if not _may_be_replaced(parameter):
            return None
        first = parameter.detach().view(-1)[:PERIOD].cpu()
        drawn = (value for value, values in self._drawn.items() if torch.equal(first, _like(values, first)))
        return next(drawn, None)


def _list_weights(module: nn.Module) -> Iterator[Tensor]:
    yield from (parameter for parameter in module.parameters() if parameter.requires_grad)
    named = [*module.named_parameters(), *module.named_buffers()]
    yield from (value for name, value in named if name.endswith(STATISTICS) and not value.requires_grad)


def _like(values: Tensor, wanted: Tensor) -> Tensor:
    return values[: wanted.numel()].to(wanted.dtype)


def _may_be_replaced(parameter: Tensor) -> bool:
    if is_lazy(parameter):
        return False
    is_usual = parameter.layout is torch.strided and not parameter.is_meta and parameter.is_contiguous()
    return is_usual and parameter.is_floating_point() and parameter.element_size() > 1 and parameter.numel() > 0


def _find_constant(parameter: Tensor) -> float | None:
    if not _may_be_replaced(parameter):
        return None
    values = parameter.detach().view(-1)
    first = float(values[0])
    if not math.isfinite(first) or 0 < abs(first) < SMALLEST or float(values[-1]) != first:
        return None
    if parameter.numel() == 1 and first == 1.0:
        return None
    return first if bool((values == first).all()) else None


def _find_kind(parameter: Tensor, value: float, kinds: Collection[Kind]) -> float | None:
    """The constant of a kind that has as many elements, and this value but for rounding."""
    near = max(SAME_CONSTANT, torch.finfo(parameter.dtype).eps)
    sizes = (constant for size, constant in kinds if size == parameter.numel())
    return next((constant for constant in sizes if math.isclose(constant, value, rel_tol=near)), None)
