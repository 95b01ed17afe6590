"""The judge's own copy of a problem on a device: module, weights, sizes, and the program that the baseline runs."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from harness.judge.devices import JudgeDevice
from harness.judge.session import Footprint
from harness.judge.truth import flatten_outputs, float32_precision
from harness.problems.load import LoadedProblem

ENTRY = "Model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`state` are the weights that reference, baseline and candidate are to share; `seed` is what they came from."""

    loaded: LoadedProblem
    device: JudgeDevice
    seed: int
    model: nn.Module
    state: dict[str, Tensor]
    footprint: Footprint


def prepare_reference(loaded: LoadedProblem, device: JudgeDevice, seed: int, input_seed: int) -> Reference:
    """Constructs the reference and runs it once to learn the form of its outputs. Raises ProblemError if it fails."""
    model = loaded.make_model(seed, device.torch_device)
    inputs = loaded.make_inputs(input_seed, device.torch_device)
    state = {name: tensor for name, tensor in model.state_dict().items() if torch.is_tensor(tensor)}
    with torch.no_grad(), float32_precision(loaded.problem.allow_tf32):
        outputs = flatten_outputs(model(*inputs))
    footprint = Footprint.measure(inputs, outputs, state)
    return Reference(loaded=loaded, device=device, seed=seed, model=model, state=state, footprint=footprint)


def usable_threads() -> int:
    """Threads for reference, baseline and candidate alike: the cores this process may run on."""
    return len(os.sched_getaffinity(0))
