"""Other weights for a model: scaled by random factors near 1, so that they stay usable, and outputs show them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from harness.evaluation.correctness.truth import list_state
from harness.evaluation.memory_plan import ROOMY
from harness.problems.inputs.tensors import split_parts, without_repeats
from harness.problems.loading import LoadedProblem
from harness.sandbox.devices import Device
from harness.tensors.values import count_bytes, has_same_bits

LEAST, MOST = 0.75, 1.25  # factors
PARTS = (16, 32, 64, 128, 256)  # of which one is scaled


def can_scale(weights: Tensor) -> bool:
    return weights.is_floating_point() and weights.element_size() > 1


def list_scalable(model: nn.Module) -> list[str]:
    """Return the names of parameters, all of tied ones."""
    return [name for name, weights in model.named_parameters(remove_duplicate=False) if can_scale(weights)]


def scale(weights: Tensor, generator: torch.Generator, *, replaces: bool = False) -> None:
    """In place. With `replaces` the weights become the factors."""
    for part in split_parts(without_repeats(weights)):
        factors = torch.rand(part.shape, generator=generator, device=part.device).mul_(MOST - LEAST).add_(LEAST)
        part.copy_(factors.to(part.dtype) if replaces else part * factors.to(part.dtype))


def scale_state(
    model: nn.Module, state: Mapping[str, Tensor], source: random.Random, *, partly: bool = False
) -> dict[str, Tensor]:
    """Return the model's `state` with all weights scaled, or a part of each, which samples may miss. Tied ones stay
    tied.
    """
    own, scaled, parts = list_state(model), dict[int, Tensor](), source.choice(PARTS) if partly else 1
    for name, weights in state.items():
        place = own[name].data_ptr()
        if place not in scaled and can_scale(weights):
            generator = torch.Generator(weights.device).manual_seed(source.getrandbits(62))
            scaled[place] = weights.clone(memory_format=torch.contiguous_format)
            length = max(weights.numel() // parts, 1)
            begin = source.randrange(weights.numel() - length + 1) if weights.numel() else 0
            scale(scaled[place].view(-1)[begin : begin + length], generator)
    return {name: scaled.get(own[name].data_ptr(), weights) for name, weights in state.items()}


def draw_other_weights(
    loaded: LoadedProblem, model: nn.Module, state: dict[str, Tensor], seed: int, device: Device
) -> dict[str, Tensor]:
    """Return the parameters that can be scaled and all state that depends on the seed: of another seed, unless memory
    is short.
    """
    drawn = list_state(loaded.make_model(random.Random(f"other weights {seed}").getrandbits(62), device.torch_device))
    scalable = set(list_scalable(model))
    names = [name for name, one in state.items() if name in scalable or not has_same_bits(one, drawn[name])]
    is_roomy = ROOMY * count_bytes(drawn.values()) <= device.measure_room().device_bytes
    return {name: (drawn if is_roomy else state)[name] for name in names}
