"""How much shared memory a problem's calls need, and where in it inputs and outputs lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor

from harness.protocol import ITEM_BYTES, Region, TensorSpec, count_kept_calls, flatten_value, place_contiguous
from harness.protocol.tensor_layout import ALIGNMENT_BYTES, MOST_KEPT, align, place_strided
from harness.sandbox.tensors.outputs import FlatOutputs
from harness.sandbox.worker_client import Called, describe

OUTPUT_PLACES = 4096  # 256 bytes apart
LEAST_BYTES = 1 << 16
INPUT_SLACK_BYTES = 64 << 20  # on a GPU: to find inputs in as much memory takes longer than it could gain


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Where inputs, expected outputs and weights of a problem lie in an arena, and how large it must be."""

    tree: dict[str, Any]
    output_specs: tuple[TensorSpec, ...]
    output: Region
    arena_bytes: int
    most_kept: int = MOST_KEPT  # calls whose outputs the worker keeps, where these are not too large for it

    @property
    def kept_calls(self) -> int:
        """Of how many calls the worker keeps the outputs, the last one included."""
        sizes = (prod(spec.shape) * ITEM_BYTES[spec.dtype] for spec in self.output_specs)
        return count_kept_calls(sum(sizes), self.most_kept)

    @classmethod
    def measure(
        cls,
        inputs: Sequence[Any],
        outputs: FlatOutputs,
        state: dict[str, Tensor],
        wider: Sequence[Any] = (),
        *,
        slack_bytes: int = 0,
    ) -> Footprint:
        """`wider` are the same inputs in the layout that takes the most room, if there is one; by up to `slack_bytes`
        they may lie further on."""
        inputs_end = max(measure_bytes(inputs), measure_bytes(wider)) + slack_bytes
        specs, end = place_contiguous([describe(tensor) for tensor in outputs.tensors], align(inputs_end))
        start = specs[0].offset if specs else align(inputs_end)
        _, state_end = place_strided([describe(tensor) for tensor in state.values()])
        region = Region(offset=start, size_bytes=end - start)
        arena_bytes = max(end + OUTPUT_PLACES * ALIGNMENT_BYTES, state_end, LEAST_BYTES)
        return cls(tree=outputs.tree, output_specs=specs, output=region, arena_bytes=arena_bytes)

    def has_form(self, called: Called) -> bool:
        """Whether a call returned what was expected, as far as nesting, shapes and dtypes go."""
        return called.tree == self.tree and _forms(called.specs) == _forms(self.output_specs)

    def with_outputs(self, outputs: FlatOutputs) -> Footprint | None:
        """The same memory with other outputs in their place; None if they do not fit there."""
        specs, end = place_contiguous([describe(tensor) for tensor in outputs.tensors], self.output.offset)
        if end > self.output.offset + self.output.size_bytes:
            return None
        return replace(self, tree=outputs.tree, output_specs=specs)


def outline(called: Called) -> FlatOutputs:
    """Tensors of the shapes and dtypes that a worker described, without data."""
    tensors = (torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta") for spec in called.specs)
    return FlatOutputs(tree=called.tree, tensors=tuple(tensors))


def _forms(specs: Sequence[TensorSpec]) -> list[tuple[str, tuple[int, ...]]]:
    return [(spec.dtype, spec.shape) for spec in specs]


def measure_bytes(values: Sequence[Any]) -> int:
    """Where the tensors of some arguments end that are laid out from the beginning of an arena."""
    return place_strided([describe(tensor) for tensor in flatten_value(tuple(values), torch.is_tensor)[1]])[1]
