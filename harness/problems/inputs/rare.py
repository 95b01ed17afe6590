"""Writes values that are rare in `get_inputs`: the smallest and largest possible ones of draws, and those that the
reference compares inputs with.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from harness.domain import InputContract
from harness.problems.inputs.conformity import find_range, is_within
from harness.problems.inputs.kind import DerivedKind, Inputs
from harness.problems.inputs.tensors import FLOATS, PATTERNS, choose_part, draw, has_own_elements, split_for_device
from harness.problems.inputs.traits import ELEMENTWISE, InputTraits, is_elementwise
from harness.tensors.values import list_tensors

PARTS = 2  # that get one of the values: elements, or slices along one dimension
MOST_INTEGER = 2.0**63  # exceeds 64 bits
PARAMETERS_SHARE = 16  # a draw of at most one in so many elements of the largest input is no data


class Rare(DerivedKind):
    name = "rare"
    variants = whole_one_in = 3
    is_combined = False
    makes_terms_alike = True  # whole slices of one value

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        tensors = list_tensors(inputs)
        has_others = any(not tensor.is_floating_point() for tensor in tensors)
        largest = max((tensor.numel() for tensor in tensors), default=0)
        has_few = traits.fewest_drawn * PARAMETERS_SHARE <= largest
        return traits.draws_integers or (traits.fewest_drawn > 0 and (has_others or has_few))

    def watch_draws(self, seed: int, traits: InputTraits | None) -> AbstractContextManager[object]:
        return Draws(seed, is_whole=self.changes_all(seed))

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        return inputs  # their draws are changed


class Compared(DerivedKind):
    """Writes constants that the reference compares an input with (of integers their neighbours, too), or values of the
    input that it is compared with, to half of the elements or to secret ones. Such comparisons are exact in every
    program, so that roundings need not be allowed for; but not in gradients, nor where equal values are ordered.
    """

    name = "compared"
    variants = whole_one_in = 3
    makes_terms_alike = True
    is_timed = False  # as zeros, which take less power

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return bool(self._list_compared(traits, inputs))

    def scales_values(self, traits: InputTraits) -> bool:
        return False

    def allows(self, contract: InputContract) -> bool:
        return is_elementwise(contract) and not contract.distinct

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        is_whole = self.changes_all(generator.initial_seed())
        drawn = [  # before any is written, since inputs may have each other's values
            (tensor, contract, sources[draw(len(sources), generator)].flatten().clone())
            for tensor, contract, sources in self._list_compared(traits, inputs)
        ]
        for tensor, contract, source in drawn:
            is_integer = not source.is_floating_point()
            low, high = find_range(tensor, contract) if is_integer else (contract.low, contract.high)
            for part in split_for_device(tensor):
                chosen = torch.randint(len(source), part.shape, generator=generator, device=part.device)
                values = source[chosen]
                if is_integer:
                    values = values + torch.randint(-1, 2, part.shape, generator=generator, device=part.device)
                if low is not None or high is not None:
                    values = values.clamp(low, high)  # type: ignore[arg-type]
                if is_whole:
                    places = torch.rand(part.shape, generator=generator, device=part.device) < 0.5
                else:
                    places = choose_part(part, generator)
                part.copy_(torch.where(places, values.to(part.dtype), part))
        return inputs

    def _list_compared(
        self, traits: InputTraits, inputs: Sequence[Any]
    ) -> list[tuple[Tensor, InputContract, list[Tensor]]]:
        """Return each input with tensors of which one has the values to write."""
        found = []
        tensors = [(leaf.detach(), contract) for leaf, contract in traits.pair(inputs) if isinstance(leaf, Tensor)]
        pairs = traits.use.pairs | {(other, one) for one, other in traits.use.pairs}
        takes_reals = not traits.problem.backward and not traits.use.orders_values
        for at, (tensor, contract) in enumerate(tensors):
            is_real = takes_reals and tensor.dtype in PATTERNS
            is_usable = self.may_change(contract) and tensor.numel() and has_own_elements(tensor)
            if is_usable and (is_real or contract.kind in ELEMENTWISE):
                constants = [one for place, one in sorted(traits.use.compared) if place == at]
                drawn = [tensors[other][0] for one, other in sorted(pairs) if one == at]
                usable = [one for one in constants if _is_exact(one, tensor.dtype) and is_within(one, contract)]
                dtype = tensor.dtype if is_real else torch.int64  # constants may exceed the range of a shorter one
                sources = [tensor.new_tensor(usable, dtype=dtype)] * bool(usable)
                sources += [one for one in drawn if one.dtype == tensor.dtype and one.numel()]
                if sources:
                    found.append((tensor, contract, sources))
        return found


def _is_exact(value: float, dtype: torch.dtype) -> bool:
    """Return whether the dtype represents the value: programs may compare others in a wider one."""
    if dtype.is_floating_point:
        return float(torch.tensor(value, dtype=dtype)) == value
    return value.is_integer() and abs(value) < MOST_INTEGER


class Draws(TorchFunctionMode):
    """Watches draws. `fewest` is the number of elements of the smallest draw of floats (0 without one). With a seed, it
    writes extreme values to random positions, or with `is_whole` to slices.
    """

    def __init__(self, seed: int | None = None, *, is_whole: bool = False) -> None:
        super().__init__()
        self._seed, self._is_whole = seed, is_whole
        self._generators: dict[torch.device, torch.Generator] = {}
        self.integers, self.fewest = False, 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        result = func(*args, **options)
        if options.get("generator") is not None or not isinstance(result, Tensor) or not result.numel():
            return result
        if func in (torch.rand, torch.rand_like) and result.dtype in FLOATS:
            self.fewest = min(self.fewest or result.numel(), result.numel())
            self._write(result, 0.0, 1.0 - torch.finfo(result.dtype).eps / 2)
        elif func is torch.randint:
            self.integers = True
            self._write(result, *_find_bounds(args, options))
        return result

    def _write(self, drawn: Tensor, *values: float) -> None:
        if self._seed is None or drawn.is_meta:
            return
        if drawn.device not in self._generators:
            self._generators[drawn.device] = torch.Generator(device=drawn.device).manual_seed(self._seed)
        generator = self._generators[drawn.device]
        # Whole rows at last: they stay as they are written.
        dimensions: Iterable[int | None] = reversed(range(max(drawn.dim(), 1))) if self._is_whole else [None] * PARTS
        for dimension, value in product(dimensions, values):
            drawn.masked_fill_(choose_part(drawn, generator, dimension=dimension).expand_as(drawn), value)


def _find_bounds(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, int]:
    given = [value for value in args if isinstance(value, int)]
    low = options.get("low", given[0] if len(given) == (2 if "high" not in options else 1) else 0)
    return int(low), int(options["high"] if "high" in options else given[-1]) - 1
