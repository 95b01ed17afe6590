from __future__ import annotations

import torch
from torch import Tensor

from harness.problems.inputs.kind import InputKind, Inputs
from harness.problems.inputs.traits import InputTraits
from harness.tensors.trees import map_tensors

PADDING = 8  # elements between two rows: rows stay aligned for vector loads


class Padded(InputKind):
    name = "padded"
    text = "as given, in a view with NaN between the rows"
    changes_layout = True

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        return pad_rows(inputs)


def pad_rows(inputs: Inputs) -> Inputs:
    """Return every tensor as a strided view of a buffer padded with NaN (integers: zero)."""
    padded: Inputs = map_tensors(inputs, _pad)
    return padded


def _pad(tensor: Tensor) -> Tensor:
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    *rows, length = tensor.shape
    between = float("nan") if tensor.is_floating_point() or tensor.is_complex() else 0
    buffer = tensor.new_full((*rows, length + PADDING), between)
    view = buffer[..., PADDING:]
    view.copy_(tensor)
    return view
