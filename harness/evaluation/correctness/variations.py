"""What a problem may be varied in beside the values of its inputs: other weights, and inputs of a nearby shape.

Makes the variation and the truth for it, or finds that there is none. No candidate is called here.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from harness.domain import ProblemError
from harness.evaluation.correctness.reference import SMALL_BYTES, Reference
from harness.evaluation.correctness.reference_checks import has_only_numbers
from harness.evaluation.correctness.truth import Truth, compute_truth, copy_tensors, run_reference, write_state
from harness.problems.tensor_trees import map_tensors
from harness.protocol import flatten_value
from harness.sandbox.arena_layout import Footprint
from harness.sandbox.seeding import keep_seed

LARGEST_CUT = 4  # a dimension loses at most one in so many
# What takes only probabilities, or rates.
PARTICULAR = {
    "aten::multinomial", "aten::bernoulli", "aten::bernoulli.p", "aten::bernoulli_.Tensor", "aten::poisson",
    "aten::binomial", "aten::binary_cross_entropy",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWeights:
    """The reference with other weights of the same distribution; `state` are all of them, by name."""

    model: nn.Module
    state: dict[str, Tensor]

    def truth_of(self, reference: Reference, inputs: Sequence[Any]) -> Truth:
        changing = {name: self.state[name].clone() for name in reference.changing}
        return compute_truth(
            reference.loaded, self.model, inputs, reference.float64_limit, state=changing, device=reference.computes_on
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    """Smaller inputs with their truth, and how the arena is divided for them. `description` gives the shapes."""

    inputs: tuple[Any, ...]
    truth: Truth
    footprint: Footprint
    description: str


def make_other_weights(reference: Reference, seed: int) -> OtherWeights | None:
    """The reference constructed under another seed. What a seed does not change (the ones of a fresh norm) is scaled,
    each element by up to a quarter. None if nothing can be changed."""
    model = reference.loaded.make_model(seed, reference.device.torch_device)
    generator = torch.Generator(device=reference.device.torch_device).manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and torch.equal(parameter, reference.state[name]):
            noise = torch.rand(parameter.shape, generator=generator, device=parameter.device)
            parameter.mul_((0.75 + 0.5 * noise).to(parameter.dtype))
    state = {name: tensor for name, tensor in model.state_dict().items() if torch.is_tensor(tensor)}
    if all(torch.equal(tensor, reference.state[name]) for name, tensor in state.items()):
        return None
    return OtherWeights(model=model, state=state)


def find_nearby(reference: Reference, inputs: Sequence[Any], source: random.Random) -> Nearby | None:
    """The first way to cut the inputs on which the reference runs, with finite outputs of the usual structure. None if
    there is no such way."""
    tensors = flatten_value(tuple(inputs), torch.is_tensor)[1]
    may_spoil_the_gpu = reference.device.is_cuda and _may_index(reference, inputs)
    for cut in list_cuts([tuple(tensor.shape) for tensor in tensors], source):
        smaller = cut_inputs(inputs, cut)
        if may_spoil_the_gpu and not _runs_on_cpu(reference, smaller):
            continue
        with suppress(ProblemError):
            truth = reference.truth_of(smaller)
            footprint = _fit(reference, truth)
            if footprint is not None:
                shapes = [tuple(tensor.shape) for tensor in flatten_value(smaller, torch.is_tensor)[1]]
                description = f"inputs of shapes {', '.join(map(str, shapes))}"
                return Nearby(inputs=smaller, truth=truth, footprint=footprint, description=description)
    return None


Cut = dict[tuple[int, int], int]  # (tensor, dimension) -> how many elements are left


def list_cuts(shapes: Sequence[tuple[int, ...]], source: random.Random) -> Iterator[Cut]:
    """Ways to make inputs smaller by an odd number: the first dimension of all that share its size, of the first alone,
    every dimension of that size; then the same with the last dimension."""
    first = next((index for index, shape in enumerate(shapes) if shape), None)
    if first is None:
        return
    for end in (0, -1):
        size = shapes[first][end]
        if size < 2:
            continue
        left = size - source.randrange(1, max(size // LARGEST_CUT, 1) + 1, 2)
        ends = {(index, end % len(shape)): left for index, shape in enumerate(shapes) if shape and shape[end] == size}
        yield ends
        yield {(first, end % len(shapes[first])): left}
        yield {
            (index, dim): left for index, shape in enumerate(shapes) for dim, other in enumerate(shape) if other == size
        }


def cut_inputs(inputs: Sequence[Any], cut: Cut) -> tuple[Any, ...]:
    """Dense copies of the beginnings of the tensors, their dimensions in the order in memory that they had."""
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


def is_particular_about_values(reference: Reference, inputs: Sequence[Any]) -> bool:
    """Whether the reference makes integers of floating values (which may be indices), or calls what takes only some
    values. It is called once."""
    watch = _WatchValues()
    with torch.no_grad(), watch:
        reference.model(*copy_tensors(inputs, reference.computes_on))
    write_state(reference.model, reference.changing)
    return watch.is_particular


def takes_layout(reference: Reference, inputs: Sequence[Any]) -> bool:
    """Whether the reference runs on inputs with just these strides: the usual copies of padded inputs are dense."""

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


class _WatchValues(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operators that end with an assertion on a GPU, where the CPU raises."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.is_particular = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, options = func.name(), kwargs or {}
        self.is_particular |= name in PARTICULAR
        wanted = options.get("dtype")
        if name == "aten::_to_copy" and wanted is not None:
            self.is_particular |= args[0].is_floating_point() and not wanted.is_floating_point
        return func(*args, **options)


def _may_index(reference: Reference, inputs: Sequence[Any]) -> bool:
    tensors = flatten_value(tuple(inputs), torch.is_tensor)[1]
    whole = any(not (tensor.is_floating_point() or tensor.is_complex()) for tensor in tensors)
    return whole or is_particular_about_values(reference, inputs)


def _runs_on_cpu(reference: Reference, inputs: Sequence[Any]) -> bool:
    """On a GPU an index beyond its table spoils this whole process, so the CPU goes first. What would take long there
    is not tried at all."""
    tensors = flatten_value(tuple(inputs), torch.is_tensor)[1]
    everything = [*tensors, *reference.state.values()]
    if sum(tensor.numel() * tensor.element_size() for tensor in everything) > SMALL_BYTES:
        return False
    try:
        copy.deepcopy(reference.model).cpu()(*map_tensors(tuple(inputs), lambda tensor: tensor.cpu()))
    except Exception:  # noqa: BLE001 - the reference is the user's: whatever it raises, it does not take these inputs
        return False
    return True


def _fit(reference: Reference, truth: Truth) -> Footprint | None:
    """None if the outputs are not finite, do not fit, or are not the usual ones but for their sizes."""
    outputs = truth.reference_outputs
    usual = reference.footprint
    forms = [(str(tensor.dtype).removeprefix("torch."), tensor.dim()) for tensor in outputs.tensors]
    if outputs.tree != usual.tree or forms != [(spec.dtype, len(spec.shape)) for spec in usual.output_specs]:
        return None
    return usual.with_outputs(outputs) if has_only_numbers(outputs) else None
