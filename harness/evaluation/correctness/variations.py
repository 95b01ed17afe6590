"""Makes other weights and nearby shapes of a problem."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from harness.domain import BLOCK_SIZES, ProblemError
from harness.evaluation.correctness.other_states import Changes, can_scale, may_index, scale, scale_state, vary_weights
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.reference_checks import has_only_numbers
from harness.evaluation.correctness.truth import (
    Expected,
    Truth,
    compute_truth,
    list_state,
    run_reference,
    write_state,
)
from harness.evaluation.memory_plan import SMALL_BYTES
from harness.sandbox.arena_layout import Footprint
from harness.tensors.outputs import FlatOutputs
from harness.tensors.values import HOST, count_bytes, keep_seed, list_tensors, map_tensors

LARGEST_CUT = 4  # a dimension loses at most this fraction (1 in 4)
CutForm = Literal["odd", "even", "blocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWeights:
    model: nn.Module
    state: dict[str, Tensor]

    def truth_of(self, reference: Reference, inputs: Sequence[Any]) -> Truth:
        changing = {name: self.state[name].clone() for name in reference.changing}
        return compute_truth(
            reference.loaded,
            self.model,
            inputs,
            reference.float64_limit,
            state=changing,
            device=reference.computes_on,
            graphs=reference.graphs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    inputs: tuple[Any, ...]
    expected: Expected
    footprint: Footprint


def make_other_weights(
    reference: Reference, seed: int, *, changes: Sequence[Changes] = (), varied: bool = False
) -> OtherWeights | None:
    """Use another seed; `changes`: and change parts of these weights in turn; `varied`: scattered ones are larger or
    have the other sign. Tensors outside the state stay, since candidates keep theirs. Return None if no weight changes.
    """
    state = _draw_other_state(reference, seed)
    if state is None:
        return None
    for one in changes:
        state = scale_state(reference.model, state, random.Random(seed), one)
    state = vary_weights(reference.model, state, random.Random(seed)) if varied else state
    model = reference.loaded.make_model(reference.seed, reference.device.torch_device)
    with _may_write(model):
        write_state(model, state)
    return OtherWeights(model=model, state=list_state(model))


def _draw_other_state(reference: Reference, seed: int) -> dict[str, Tensor] | None:
    """Use host memory, since a third model may not fit on the device. Scale parameters by up to 25 % per element, which
    breaks copies, norms and angles that a constructor makes.
    """
    model = reference.loaded.make_model(seed, reference.device.torch_device)
    generator = torch.Generator(device=reference.device.torch_device).manual_seed(seed)
    state = list_state(model)
    with _may_write(model):
        for name, parameter in model.named_parameters():
            if name in state and can_scale(parameter):
                scale(parameter.detach(), generator)
    if all(torch.equal(tensor, reference.state[name]) for name, tensor in state.items()):
        return None
    return {name: tensor.to(HOST) for name, tensor in state.items()}


def _may_write(model: nn.Module) -> AbstractContextManager[Any]:
    return torch.inference_mode() if any(map(torch.is_inference, model.parameters())) else torch.no_grad()


def find_nearby(
    reference: Reference, inputs: Sequence[Any], source: random.Random, form: CutForm = "odd"
) -> Nearby | None:
    tensors = list_tensors(inputs)
    may_spoil_the_gpu = reference.device.has_contexts and may_index(reference, inputs)
    for cut in list_cuts([tuple(tensor.shape) for tensor in tensors], source, form):
        smaller = cut_inputs(inputs, cut)
        if may_spoil_the_gpu and not _runs_on_cpu(reference, smaller):
            continue
        with suppress(ProblemError):
            expected = reference.expect(smaller, own_first=reference.compares_own_first)
            footprint = _fit(reference, expected.form.reference_outputs)
            if footprint is not None:
                return Nearby(inputs=smaller, expected=expected, footprint=footprint)
    return None


Cut = dict[tuple[int, int], int]  # (tensor, dimension) -> how many elements are left


def list_cuts(shapes: Sequence[tuple[int, ...]], source: random.Random, form: CutForm = "odd") -> Iterator[Cut]:
    """Shorten a dimension by an odd or even number, or to whole blocks: with all dimensions of that size, which may be
    one size of the problem; with those at the same place; alone. Begin with those of no size that is a row's.
    """
    dims = [(index, at) for index, shape in enumerate(shapes) for at in (*range(len(shape) - 1), *[-1] * bool(shape))]
    rows = {shape[-1] for shape in shapes if len(shape) > 1}

    def choose(place: tuple[int, int]) -> tuple[bool, float]:
        size = shapes[place[0]][place[1]]
        return size in rows, -(source.random() ** (1 / math.log2(max(size, 1) + 1)))  # mostly a long one

    for index, at in sorted(dims, key=choose):
        size = shapes[index][at]
        blocks = [block for block in BLOCK_SIZES if 2 * block <= size]
        least = 2 if form == "even" else 1
        if size <= least or (form == "blocks" and not blocks):
            continue
        if form == "blocks":
            block = source.choice(blocks)
            left = (size - 1) // block * block
        else:
            left = size - source.randrange(least, max(size // LARGEST_CUT, least) + 1, 2)
        yield {(other, dim): left for other, shape in enumerate(shapes) for dim, one in enumerate(shape) if one == size}
        places = [(other, at % len(shape)) for other, shape in enumerate(shapes) if len(shape) > max(at, 0)]
        yield {(other, dim): left for other, dim in places if shapes[other][dim] == size}
        yield {(index, at % len(shapes[index])): left}


def cut_inputs(inputs: Sequence[Any], cut: Cut) -> tuple[Any, ...]:
    count = iter(range(len(cut) + 4096))

    def shorten(tensor: Tensor) -> Tensor:
        index = next(count)
        lengths = [cut.get((index, dim), size) for dim, size in enumerate(tensor.shape)]
        if lengths == list(tensor.shape):
            return tensor.detach().clone()
        strides = tensor.stride()
        order = sorted(range(tensor.dim()), key=lambda dim: -strides[dim])
        part = tensor[tuple(slice(length) for length in lengths)].permute(order).contiguous()
        return part.permute([order.index(dim) for dim in range(tensor.dim())])

    return keep_seed(map_tensors(tuple(inputs), shorten), inputs)


def takes_layout(reference: Reference, inputs: Sequence[Any]) -> bool:
    def copy_strided(tensor: Tensor) -> Tensor:
        device = reference.computes_on or tensor.device
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device).copy_(tensor)

    with torch.no_grad():
        write_state(reference.model, reference.changing)
        try:
            run_reference(reference.loaded, reference.model, map_tensors(tuple(inputs), copy_strided))
        except ProblemError:
            return False
    return True


def _runs_on_cpu(reference: Reference, inputs: Sequence[Any]) -> bool:
    """An index error on a GPU would break this process's context. Return False for large inputs."""
    tensors = list_tensors(inputs)
    if count_bytes([*tensors, *reference.state.values()]) > SMALL_BYTES:
        return False
    try:
        copy.deepcopy(reference.model).cpu()(*map_tensors(tuple(inputs), lambda tensor: tensor.cpu()))
    except Exception:  # noqa: BLE001 - the reference is the user's: whatever it raises, it does not take these inputs
        return False
    return True


def _fit(reference: Reference, outputs: FlatOutputs) -> Footprint | None:
    usual = reference.footprint
    forms = [(str(tensor.dtype).removeprefix("torch."), tensor.dim()) for tensor in outputs.tensors]
    if outputs.tree != usual.tree or forms != [(spec.dtype, len(spec.shape)) for spec in usual.output_specs]:
        return None
    return usual.with_outputs(outputs) if has_only_numbers(outputs) else None
