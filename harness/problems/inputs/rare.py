"""Writes the smallest and largest possible values of draws, which are rare in `get_inputs`."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from harness.problems.inputs.kind import DerivedKind, Inputs
from harness.problems.inputs.tensors import FLOATS, choose_part
from harness.problems.inputs.traits import InputTraits
from harness.tensors.values import list_tensors

PARTS = 2  # that get one of the values: elements, or slices along one dimension
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
