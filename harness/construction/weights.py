"""Makes random weights independent of how a constructor allocates them, and replaces those that it fills with a
constant, which would hide the work that uses them.

Reference, baseline and candidate get equal values, by seed and constant alone: names and shapes may differ. If a
candidate has fewer such parameters, its other tensors are searched.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

import numpy.random  # here, since numpy loads it late, and each worker would again
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


def run_with_default(device: torch.device, run: Callable[[torch.device], T]) -> T:
    """Run with `device` as torch's default, and again with the host if code needs a host generator or numpy."""
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


Kind = tuple[int, float]  # number of elements, and the value of all
PERIOD = 65_537
SMALLEST, VISIBLE = 1e-3, 0.125  # of a constant; smaller ones, which may hide what they scale, become larger
SAME_CONSTANT = 1e-4  # relative; a program may compute a constant in another way
# Ends of names of buffers, and of parameters without gradients, that are weights in spite of that.
WEIGHTS = ("running_mean", "running_var", "weight", "bias", "gamma", "beta", "scale")
LARGEST_PACKED, MOST_RUNS = (
    1 << 22,
    64,
)  # elements of a tensor that holds several weights, and stretches of equal values


class ConstantWeights:
    """`kinds` has an entry per weight that the reference replaces (None: all). A 1 stays, often a Python number."""

    def __init__(self, seed: int, kinds: Sequence[Kind] | None = None) -> None:
        self._seed = seed
        self._kinds = None if kinds is None else Counter(kinds)
        self._drawn: dict[float, Tensor] = {}

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Replace the constants of each weight and module when it becomes part of another."""
        if self._kinds is not None and not self._kinds:
            yield
            return
        with ExitStack() as hooks:
            hooks.enter_context(torch_module.register_module_parameter_registration_hook(self._take_parameter))
            hooks.enter_context(torch_module.register_module_module_registration_hook(self._take_module))
            yield

    def replace_in(self, module: nn.Module) -> None:
        for weight in _list_weights(module):
            self._replace(weight, self._kinds)

    def search(self, module: nn.Module) -> None:
        """Replace constants of the kinds that the reference has more often than the complete module's weights."""
        missing = (self._kinds or Counter()) - Counter(self.list_kinds(module))
        if not missing:
            return
        weights = {id(weight) for weight in _list_weights(module)}
        tensors = [tensor for tensor in _list_tensors(module) if _may_be_replaced(tensor)]
        for tensor in tensors:
            if id(tensor) not in weights:
                missing -= Counter(self._replace(tensor, missing))
        for tensor in tensors:
            missing -= Counter(self._replace_parts(tensor, missing))

    def list_kinds(self, module: nn.Module) -> tuple[Kind, ...]:
        found = ((weight.numel(), self._find_drawn(weight)) for weight in _list_weights(module))
        return tuple((size, value) for size, value in found if value is not None)

    def _take_parameter(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if isinstance(parameter, nn.Parameter) and parameter.requires_grad:
            self._replace(parameter, self._kinds)

    def _take_module(self, module: nn.Module, name: str, part: nn.Module | None) -> None:
        if isinstance(part, nn.Module):
            self.replace_in(part)

    def _replace(self, tensor: Tensor, kinds: Counter[Kind] | None) -> tuple[Kind, ...]:
        value = _find_constant(tensor)
        if value is None or self._find_drawn(tensor) is not None:  # a single one, replaced before
            return ()
        if kinds is not None:
            sizes = (constant for size, constant in kinds if size == tensor.numel())
            value = next((constant for constant in sizes if _are_near(constant, value, tensor.dtype)), None)
        if value is None:
            return ()
        self._fill(tensor, value)
        return ((tensor.numel(), value),)

    def _replace_parts(self, tensor: Tensor, missing: Counter[Kind]) -> Iterator[Kind]:
        if not missing or tensor.numel() > LARGEST_PACKED:
            return
        flat = tensor.detach().view(-1)
        values, lengths = torch.unique_consecutive(flat, return_counts=True)
        if len(values) > MOST_RUNS:
            return
        for stretch, value in zip(torch.split(flat, lengths.tolist()), values.tolist(), strict=True):
            kinds = [kind for kind in missing if _are_near(kind[1], value, tensor.dtype)]
            fitting = [kind for kind in kinds if kind[0] <= stretch.numel()]
            for part in torch.split(stretch, max(fitting)[0]) if fitting else ():
                self._fill(part, max(fitting)[1])
                yield max(fitting)

    def _fill(self, tensor: Tensor, value: float) -> None:
        with torch.inference_mode() if tensor.is_inference() else nullcontext():
            for part in torch.split(tensor.detach().view(-1), PERIOD * 64):
                drawn = self._draw(value).to(part.device)
                part.copy_(drawn.repeat(-(-part.numel() // PERIOD))[: part.numel()])

    def _draw(self, constant: float) -> Tensor:
        """Replace 0 by values of both signs from 0.25 to 0.75, others by values up to half larger or smaller, or around
        `VISIBLE` if they are below `SMALLEST`.
        """
        if constant not in self._drawn:
            seed = (self._seed + hash(constant)) % 2**62  # constants get different values
            draws = torch.rand(3, PERIOD, generator=torch.Generator("cpu").manual_seed(seed), device="cpu")
            signs = torch.where(draws[0] < 0.5, -1.0, 1.0)
            size = constant if abs(constant) >= SMALLEST else math.copysign(VISIBLE, constant)
            self._drawn[constant] = size * (0.5 + draws[2]) if constant else signs * (0.25 + 0.5 * draws[1])
        return self._drawn[constant]

    def _find_drawn(self, tensor: Tensor) -> float | None:
        if not _may_be_replaced(tensor):
            return None
        first = tensor.detach().view(-1)[:PERIOD].cpu()
        drawn = (value for value, values in self._drawn.items() if torch.equal(first, _like(values, first)))
        return next(drawn, None)


def _list_weights(module: nn.Module) -> Iterator[Tensor]:
    yield from (parameter for parameter in module.parameters() if parameter.requires_grad)
    named = [*module.named_parameters(), *module.named_buffers()]
    yield from (value for name, value in named if name.endswith(WEIGHTS) and not value.requires_grad)


def _list_tensors(module: nn.Module) -> Iterable[Tensor]:
    found = [*module.parameters(), *module.buffers()]
    for part in module.modules():
        for value in vars(part).values():
            values = (
                value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
            )
            found += (one for one in values if isinstance(one, Tensor))
    return {id(tensor): tensor for tensor in found}.values()


def _like(values: Tensor, wanted: Tensor) -> Tensor:
    return values[: wanted.numel()].to(wanted.dtype)


def list_lazy(model: nn.Module) -> list[str]:
    """Return names of weights that have no shape until the first call, as those of lazy modules."""
    return [name for name, value in (*model.named_parameters(), *model.named_buffers()) if is_lazy(value)]


def _may_be_replaced(tensor: Tensor) -> bool:
    if is_lazy(tensor):
        return False
    is_usual = tensor.layout is torch.strided and not tensor.is_meta and tensor.is_contiguous()
    return is_usual and tensor.is_floating_point() and tensor.element_size() > 1 and tensor.numel() > 0


def _find_constant(tensor: Tensor) -> float | None:
    if not _may_be_replaced(tensor):
        return None
    values = tensor.detach().view(-1)
    first = float(values[0])
    if not math.isfinite(first) or float(values[-1]) != first:
        return None
    if tensor.numel() == 1 and first == 1.0:
        return None
    return first if bool((values == first).all()) else None


def _are_near(constant: float, value: float, dtype: torch.dtype) -> bool:
    return math.isclose(constant, value, rel_tol=max(SAME_CONSTANT, torch.finfo(dtype).eps))
