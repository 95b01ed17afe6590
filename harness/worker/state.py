"""State that calls change: written when a call begins, returned when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from harness.protocol import TensorSpec, group_equal

Read = Callable[[], Tensor]


@dataclass(frozen=True, slots=True)
class _Group:
    """Tensors of one dtype. `shapes` holds, by index, those that are not one-dimensional."""

    reads: tuple[Read, ...]
    sizes: tuple[int, ...]
    shapes: tuple[tuple[int, tuple[int, ...]], ...]

    @classmethod
    def of(cls, reads: Sequence[Read], specs: Sequence[TensorSpec]) -> _Group:
        shapes = ((index, spec.shape) for index, spec in enumerate(specs) if len(spec.shape) != 1)
        return cls(tuple(reads), tuple(torch.Size(spec.shape).numel() for spec in specs), tuple(shapes))

    def split(self, packed: Tensor) -> list[Tensor]:
        parts = list(packed.split_with_sizes(self.sizes))
        for index, shape in self.shapes:
            parts[index] = parts[index].view(shape)
        return parts


class HeldState:
    def __init__(self, model: nn.Module, entries: Sequence[tuple[str, str, TensorSpec]]) -> None:
        self.names = tuple(name for name, _, _ in entries)
        self._reads = [_find_state(model, own) for _, own, _ in entries]
        specs = [spec for _, _, spec in entries]
        groups = group_equal([spec.dtype for spec in specs]).values()
        self._groups = [_Group.of([self._reads[i] for i in group], [specs[i] for i in group]) for group in groups]

    def read(self) -> list[Tensor]:
        return [read().detach() for read in self._reads]

    def copy(self) -> list[Tensor]:
        return [one.clone() for one in self.read()]

    def split(self, packed: Sequence[Tensor]) -> list[list[Tensor]]:
        """`packed` holds one flat tensor per dtype, or none. Returns views; takes 1 us per tensor."""
        return [group.split(one) for group, one in zip(self._groups, packed, strict=False)]

    def load(self, parts: Sequence[list[Tensor]]) -> None:
        """Copy once per dtype: a loop over hundreds of statistics would take longer than some calls."""
        for group, sources in zip(self._groups, parts, strict=False):
            torch._foreach_copy_([read() for read in group.reads], sources)


def _find_state(model: nn.Module, name: str) -> Read:
    path, _, attribute = name.rpartition(".")
    with suppress(AttributeError):
        owner = model.get_submodule(path)
        for own in (owner._buffers, owner._parameters):  # `getattr` takes ten times as long
            if own.get(attribute) is not None:
                return cast(Read, partial(own.__getitem__, attribute))
        if torch.is_tensor(getattr(owner, attribute)):
            return partial(getattr, owner, attribute)
    return lambda: model.state_dict()[name]
