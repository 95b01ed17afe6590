"""Plans the shared memory of a problem's calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self

import torch
from torch import Tensor

from harness.protocol import (
    ITEM_BYTES,
    Region,
    TensorSpec,
    count_kept_calls,
    have_same_nesting,
    place_contiguous,
    storage_bytes,
)
from harness.protocol.tensor_layout import ALIGNMENT_BYTES, MOST_KEPT, align, place_strided
from harness.sandbox.worker_client import Called, describe
from harness.tensors.outputs import FlatOutputs, Span
from harness.tensors.values import count_bytes, list_tensors

OUTPUT_OFFSETS = 4096  # 256 bytes apart
LEAST_BYTES = 1 << 16
OVERLAY_BYTES = 1 << 30  # on a GPU: larger inputs and outputs share the memory, which is rarely used for outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    tree: dict[str, Any]
    output_specs: tuple[TensorSpec, ...]
    output: Region
    arena_bytes: int
    most_kept: int = MOST_KEPT  # calls whose outputs the worker keeps, unless they are too large
    views: frozenset[int] = frozenset()  # outputs that may lie in the memory of inputs or state
    alike: frozenset[int] = frozenset()  # outputs that may share elements with other outputs

    @property
    def kept_calls(self) -> int:
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
        changing: Mapping[str, Tensor] | None = None,
        slack_bytes: int = 0,
        views: frozenset[int] = frozenset(),
        alike: frozenset[int] = frozenset(),
    ) -> Self:
        """`wider`: inputs in the largest layout; `changing`: state after them; `slack_bytes`: largest shift."""
        packed_bytes = sum(align(count_bytes((tensor,))) for tensor in (changing or {}).values())
        inputs_end = max(measure_bytes(inputs), measure_bytes(wider)) + packed_bytes + slack_bytes
        start = 0 if slack_bytes and inputs_end >= OVERLAY_BYTES else align(inputs_end)
        specs, end = place_contiguous([describe(tensor) for tensor in outputs.tensors], start)
        _, state_end = place_strided([describe(tensor) for tensor in state.values()])
        region = Region(offset=start, size_bytes=end - start)
        arena_bytes = max(inputs_end, end + OUTPUT_OFFSETS * ALIGNMENT_BYTES, state_end, LEAST_BYTES)
        return cls(
            tree=outputs.tree, output_specs=specs, output=region, arena_bytes=arena_bytes, views=views, alike=alike
        )

    def has_form(self, called: Called) -> bool:
        return have_same_nesting(called.tree, self.tree) and _forms(called.specs) == _forms(self.output_specs)

    def list_own_spans(self, called: Called) -> list[Span]:
        """Return those of outputs that share no memory in the reference."""
        places = enumerate(zip(called.addresses, called.specs, strict=True))
        shared = self.views | self.alike
        return [(address, address + storage_bytes(spec)) for at, (address, spec) in places if at not in shared]

    def expects(self, outputs: FlatOutputs) -> bool:
        specs = [describe(tensor) for tensor in outputs.tensors]
        return outputs.tree == self.tree and _forms(specs) == _forms(self.output_specs)

    def with_outputs(self, outputs: FlatOutputs) -> Self | None:
        specs, end = place_contiguous([describe(tensor) for tensor in outputs.tensors], self.output.offset)
        if end > self.output.offset + self.output.size_bytes:
            return None
        return replace(self, tree=outputs.tree, output_specs=specs)


def outline(called: Called) -> FlatOutputs:
    tensors = (torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta") for spec in called.specs)
    return FlatOutputs(tree=called.tree, tensors=tuple(tensors))


def _forms(specs: Sequence[TensorSpec]) -> list[tuple[str, tuple[int, ...]]]:
    return [(spec.dtype, spec.shape) for spec in specs]


def measure_bytes(values: Sequence[Any]) -> int:
    return place_strided([describe(tensor) for tensor in list_tensors(values)])[1]
