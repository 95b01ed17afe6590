"""The judge's own copy of a problem on a device: module, weights, sizes, and the program that the baseline runs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import MIXED
from harness.evaluation.correctness.reference_checks import (
    compare_runs,
    contain_memory,
    has_only_numbers,
    require_finite,
    require_memory,
    require_sendable,
    require_weights_known,
)
from harness.evaluation.correctness.truth import (
    Truth,
    compute_truth,
    copy_tensors,
    float32_precision,
    run_and_compare_state,
    run_reference,
    write_state,
)
from harness.problems.distributions import pad_rows
from harness.problems.loading import LoadedProblem
from harness.protocol import flatten_value
from harness.sandbox.arena_layout import INPUT_SLACK_BYTES, Footprint
from harness.sandbox.devices import JudgeDevice
from harness.sandbox.seeding import have_advanced, read_generators, seed_call
from harness.sandbox.tensors.outputs import Difference, FlatOutputs, has_same_bits

ENTRY = "Model"
SMALL_BYTES = 64 << 20
SMALL_CALL_S = 0.05
MIXED_ONE_IN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`state` are the weights that reference, baseline and candidate are to share; `seed` is what they came from.

    `changing` is the part of the state that calls change, with the values that every call is to begin with. `call_s` is
    what one call took here; `is_small` where that, and the tensors, are so little that many calls cost nothing.
    `changes_inputs`: it works in place on what it is given, and so may who does as it does. `variation`: how two runs
    on the same inputs differed, None where they agreed bit for bit. `draws_numbers`: calls draw random numbers of
    torch's, which is seeded before each of them.
    """

    loaded: LoadedProblem
    device: JudgeDevice
    seed: int
    model: nn.Module
    state: dict[str, Tensor]
    footprint: Footprint
    changing: dict[str, Tensor]
    call_s: float
    is_small: bool
    changes_inputs: bool
    variation: Difference | None
    draws_numbers: bool

    @property
    def changes_state(self) -> bool:
        """Whether sessions must `reset_state` before each call."""
        return bool(self.changing)

    @property
    def requires_same_bits(self) -> bool:
        """Whether a candidate must give the same bits again on the same inputs: what the problem declares, unless the
        reference itself does not do so here."""
        return self.loaded.problem.deterministic and self.variation is None

    def make_inputs(self, seed: int, distribution: str = "as_given") -> tuple[Any, ...]:
        inputs = self.loaded.make_inputs(seed, self.device.torch_device, distribution)
        return seed_call(inputs, seed) if self.draws_numbers else inputs

    def make_timed_inputs(self, seed: int) -> tuple[Any, ...]:
        """Inputs of a timed call: some of them mixed, so that a shortcut for given inputs is not worth taking there."""
        return self.make_inputs(seed, MIXED if seed % MIXED_ONE_IN == 0 else "as_given")

    def outputs_of(self, inputs: Sequence[Any]) -> FlatOutputs:
        """What the reference itself gives on these inputs, begun with the usual state. Raises ProblemError if it
        fails."""
        with torch.no_grad(), float32_precision(self.loaded.problem.allow_tf32):
            write_state(self.model, self.changing)
            return run_reference(self.loaded, self.model, copy_tensors(inputs))

    def truth_of(self, inputs: Sequence[Any], state: dict[str, Tensor] | None = None) -> Truth:
        """What a call on these inputs should give, begun with the usual state, or with `state`."""
        begin = self.changing if state is None else state
        return compute_truth(self.loaded, self.model, inputs, state=begin)


def prepare_reference(loaded: LoadedProblem, device: JudgeDevice, seed: int, input_seed: int) -> Reference:
    """Constructs the reference and runs it twice, to learn the form of its outputs and what it does to its own state.

    Raises ProblemError if it fails, needs more memory than there is, gives no finite outputs, or others the next time
    than its tolerance allows.
    """
    with contain_memory(loaded, device.torch_device), torch.no_grad(), float32_precision(loaded.problem.allow_tf32):
        return _prepare(loaded, device, seed, input_seed)


def _prepare(loaded: LoadedProblem, device: JudgeDevice, seed: int, input_seed: int) -> Reference:
    model = loaded.make_model(seed, device.torch_device)
    inputs = loaded.make_inputs(input_seed, device.torch_device)
    require_sendable(loaded, inputs)
    state = {name: tensor for name, tensor in model.state_dict().items() if torch.is_tensor(tensor)}
    used, generators = copy_tensors(inputs), read_generators(device.torch_device)
    outputs, changing = run_and_compare_state(loaded, model, used)
    require_weights_known(loaded, model, state)
    draws_numbers = loaded.problem.seeded_calls and have_advanced(generators, device.torch_device)
    if draws_numbers:
        inputs = seed_call(inputs, input_seed)
        outputs, changing = run_and_compare_state(loaded, model, copy_tensors(inputs))
    again, call_s = _run(loaded, model, inputs, device)
    variation = compare_runs(loaded, outputs, again)
    write_state(model, changing)
    if not has_only_numbers(outputs):
        require_finite(loaded, compute_truth(loaded, model, inputs, state=changing))
    tensors_bytes = _count_bytes([inputs, list(state.values()), list(outputs.tensors)])
    is_small = tensors_bytes <= SMALL_BYTES and call_s <= SMALL_CALL_S
    tries_padding = is_small or "padded" in loaded.problem.distributions
    wider = pad_rows(inputs) if tries_padding else ()
    slack_bytes = INPUT_SLACK_BYTES if device.is_cuda else 0
    footprint = Footprint.measure(inputs, outputs, state, wider, slack_bytes=slack_bytes)
    require_memory(loaded, footprint.arena_bytes + tensors_bytes, device.torch_device)
    return Reference(
        loaded=loaded, device=device, seed=seed, model=model, state=state, footprint=footprint, changing=changing,
        call_s=call_s, is_small=is_small, changes_inputs=_differ(inputs, used), variation=variation,
        draws_numbers=draws_numbers,
    )  # fmt: skip


def _run(
    loaded: LoadedProblem, model: nn.Module, inputs: Sequence[Any], device: JudgeDevice
) -> tuple[FlatOutputs, float]:
    """The outputs for copies of these inputs, and how many seconds that took."""
    copies = copy_tensors(inputs)
    device.synchronize()
    began_s = time.perf_counter()
    outputs = run_reference(loaded, model, copies)
    device.synchronize()
    return outputs, time.perf_counter() - began_s


def _differ(inputs: Sequence[Any], used: Sequence[Any]) -> bool:
    pairs = zip(_tensors_in(inputs), _tensors_in(used), strict=True)
    return not all(has_same_bits(before, after) for before, after in pairs if before.layout is torch.strided)


def _count_bytes(value: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors_in(value))


def _tensors_in(value: Any) -> list[Tensor]:
    return flatten_value(tuple(value), torch.is_tensor)[1]


def usable_threads() -> int:
    """Threads for reference, baseline and candidate alike: the cores this process may run on."""
    return len(os.sched_getaffinity(0))
