"""Computes the truth: the reference's outputs and state, in float64 if module and memory allow it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from harness.domain import ProblemError, WireError
from harness.evaluation.correctness.call_graphs import CallGraphs, call_model
from harness.evaluation.correctness.precision import reference_precision, widened
from harness.problems.inputs.tensors import has_many_digits
from harness.problems.loading import LoadedProblem
from harness.problems.watched_process import limit_reference
from harness.sandbox.memory_limits import count_free_bytes, limit_memory
from harness.tensors.outputs import FlatOutputs, widen_small
from harness.tensors.values import (
    HOST,
    copy_to,
    count_bytes,
    cut_slices,
    has_same_bits,
    keep_seed,
    list_tensors,
    map_tensors,
    memory_of,
    read_seed,
    read_version,
    seeded_call,
)

# Inputs, weights and outputs are counted; intermediates are assumed to need as much again.
INTERMEDIATES = 2.0
USABLE_MEMORY_SHARE = 0.6
FIRST_ELEMENTS = 1 << 10
PART_ELEMENTS = 1 << 26  # of a tensor that is converted in parts
TruthKey = tuple[int, str]  # seed and kind of the inputs


@dataclass(frozen=True, kw_only=True)
class TruthLeaf:
    """One output. `exact` is in float64, or `reference` again. `spread` is the magnitude that conditioning adds; of
    those that have steps, by how much they may differ. `element_spread` is that of single elements, not of a whole
    output. Where `reach` is known, only that explains lost elements. If not `is_calm`, legitimate programs may differ,
    so only the form is compared.
    """

    name: str
    reference: Tensor
    exact: Tensor
    compared_on: torch.device | None = None
    is_calm: bool = True
    spread: Tensor | None = None
    element_spread: Tensor | None = None
    reach: Tensor | None = None

    @property
    def spreads(self) -> tuple[Tensor, ...]:
        return tuple(one for one in (self.spread, self.element_spread) if one is not None)

    @property
    def device(self) -> torch.device:
        return self.compared_on or self.exact.device

    @property
    def is_16_bit(self) -> bool:
        return self.reference.element_size() == 2

    @property
    def has_steps(self) -> bool:
        """True for integers, booleans and floats of 8 bits, which a rounding hardly changes, or by a whole step."""
        dtype = self.reference.dtype
        return not dtype.is_complex and (not dtype.is_floating_point or dtype.itemsize == 1)

    @cached_property
    def copies_values(self) -> bool:
        """True if float64 changes nothing though the values have many digits: they are selected or moved only."""
        own, exact = self.reference, self.exact
        if own.dtype is not torch.float32 or own is exact or not own.numel():
            return False
        for elements in (FIRST_ELEMENTS, PART_ELEMENTS):  # most outputs differ in the first ones
            for _, (mine, theirs) in cut_slices(own, exact, elements=elements):
                if not bool((mine.double() == theirs).all()):
                    return False
                if elements == FIRST_ELEMENTS:
                    break
        return has_many_digits(own)


@dataclass(slots=True)
class Refined:
    """The last of a truth's refinements that were computed, and their number."""

    truth: Truth | None = None
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """`note` tells why `kind` is not float64. The last leaves are the changed state after the call, named
    `state_names`.
    """

    kind: Literal["float64", "reference"]
    tree: dict[str, Any]
    leaves: tuple[TruthLeaf, ...]
    note: str = ""
    state_names: tuple[str, ...] = ()
    refined: Refined = field(init=False, compare=False, repr=False, default_factory=Refined)

    @property
    def output_leaves(self) -> tuple[TruthLeaf, ...]:
        return self.leaves[: len(self.leaves) - len(self.state_names)]

    @property
    def state_after(self) -> dict[str, Tensor]:
        state = self.leaves[len(self.output_leaves) :]
        return {name: leaf.reference for name, leaf in zip(self.state_names, state, strict=True)}

    @property
    def reference_outputs(self) -> FlatOutputs:
        return FlatOutputs(tree=self.tree, tensors=tuple(leaf.reference for leaf in self.leaves))


class Expected:
    """If set, `own` holds the reference's outputs, which are compared first. The truth is computed only if that
    comparison is inconclusive, and the inputs must be unchanged until then.
    """

    def __init__(self, find_truth: Callable[[], Truth], own: FlatOutputs | None = None) -> None:
        self._find_truth = find_truth
        self.own = own
        self.form = self.truth if own is None else trust_outputs(own)  # names, shapes, strides

    @cached_property
    def truth(self) -> Truth:
        return self._find_truth()

    @property
    def is_calm(self) -> bool:
        return all(leaf.is_calm for leaf in self.form.leaves)

    @property
    def known_truth(self) -> Truth | None:
        return self.__dict__.get("truth")


class KeptTruths:
    """Truths of calls that several candidates of a problem make, by seed and kind of inputs; the latest of them."""

    def __init__(self, most_bytes: int = 0) -> None:
        self._most_bytes = most_bytes
        self._truths: dict[TruthKey, Truth] = {}
        self.copied: frozenset[int] | None = None  # outputs that copied values in each call; None before the first
        self.calm: dict[TruthKey, tuple[bool, ...]] = {}  # outputs that hardly depend on roundings of the inputs
        self.succeeds: dict[TruthKey, bool] = {}  # the reference, with inputs of kinds on some of which it fails
        self.largest_given: float | None = None  # intermediate result for given inputs

    def find(self, key: TruthKey | None) -> Truth | None:
        return None if key is None else self._truths.get(key)

    def compute(self, key: TruthKey | None, find_truth: Callable[[], Truth]) -> Truth:
        truth = find_truth()
        copied = frozenset(at for at, leaf in enumerate(truth.leaves) if leaf.copies_values)
        self.copied = copied if self.copied is None else self.copied & copied
        if key is not None:
            self._truths[key] = truth
            while self._truths and sum(map(_count_truth_bytes, self._truths.values())) > self._most_bytes:
                self._truths.pop(next(iter(self._truths)))
        return truth

    def clear(self) -> None:
        self._truths.clear()
        self.calm.clear()


def _count_truth_bytes(truth: Truth) -> int:
    own = [tensor for leaf in truth.leaves for tensor in (leaf.reference, leaf.exact)]
    refined = truth.refined.truth.leaves if truth.refined.truth else ()
    added = [tensor for leaf in refined for tensor in (*leaf.spreads, leaf.reach)]
    return count_bytes([*own, *filter(torch.is_tensor, added)])


def compute_truth(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    max_bytes: int | None = None,
    *,
    state: Mapping[str, Tensor] | None = None,
    device: torch.device | None = None,
    own: FlatOutputs | None = None,
    graphs: CallGraphs | None = None,
) -> Truth:
    """Run the reference in its own dtype and, if that takes at most `max_bytes` (default: a share of the free memory),
    in float64, from `state` and on copies of the inputs. With `device`, results are kept in host memory. Raises
    ProblemError.
    """
    before = dict(state or {})
    names = tuple(before)
    with torch.no_grad():
        if own is None:
            write_state(model, before)
            used = copy_tensors(inputs, device)
            own = run_with_state(loaded, model, used, before, on_host=device is not None, graphs=graphs)
        write_state(model, before)
        if read_seed(inputs) is not None:
            note = "the reference draws random numbers, and others in float64"
            return trust_outputs(own, note, names, compared_on=device)
        if max_bytes is None:
            max_bytes = int(count_free_bytes(own.tensors[0].device) * USABLE_MEMORY_SHARE)
        needed_bytes = estimate_float64_bytes(model, inputs, own.tensors)
        if needed_bytes > max_bytes:
            note = f"float64 needs about {needed_bytes} bytes, {max_bytes} are usable"
            return trust_outputs(own, note, names, compared_on=device)
        return _compute_exact(model, inputs, own, names, device=device, graphs=graphs)


def list_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers that candidates must have and maintain: all dense ones but batch norm's counts
    of calls, which matter only without a momentum.
    """
    unused = {
        f"{name}.num_batches_tracked".removeprefix(".")
        for name, module in model.named_modules()
        if getattr(module, "momentum", None) is not None
    }
    entries = ((name, value) for name, value in model.state_dict().items() if torch.is_tensor(value))
    return {name: value for name, value in entries if value.layout is torch.strided and name not in unused}


def read_state(model: nn.Module, names: Iterable[str]) -> dict[str, Tensor]:
    own = model.state_dict()
    return {name: own[name].clone() for name in names}


def write_state(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    own = model.state_dict() if state else {}
    for name, tensor in state.items():
        own[name].copy_(tensor)


def run_reference(
    loaded: LoadedProblem, model: nn.Module, inputs: Sequence[Any], graphs: CallGraphs | None = None
) -> FlatOutputs:
    """Raises ProblemError."""
    where = f"{loaded.problem.suite}/{loaded.problem.name}.py"
    try:
        with (
            torch.no_grad(),
            reference_precision(loaded.problem.allow_tf32, [*list_tensors(inputs), *model.parameters()]),
            limit_reference(where, "forward"),
            seeded_call(model, inputs),
        ):
            outputs = call_model(model, inputs, graphs)
    except WireError as error:
        raise ProblemError(f"{where}: forward must return tensors, or nested lists, tuples, dicts: {error}") from error
    if not outputs.tensors:
        raise ProblemError(f"{where}: forward returned no tensor; return the values to compare as tensors")
    return outputs


def run_with_state(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    names: Iterable[str],
    *,
    on_host: bool = False,
    graphs: CallGraphs | None = None,
) -> FlatOutputs:
    """Return outputs and these parts of the state after the call. Raises ProblemError."""
    outputs, own = run_reference(loaded, model, inputs, graphs), model.state_dict()
    state = {name: own[name] for name in names}
    return keep_on_host(outputs.with_state(state)) if on_host else _add_state(outputs, state)


def run_and_compare_state(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    *,
    others: Collection[str] = (),
) -> tuple[FlatOutputs, dict[str, Tensor]]:
    """Return the outputs, and the state that the call changed with its earlier values, which are restored. `others`
    count as changed, and so does what was written as it was, since later calls may change it.
    """
    given = list_state(model)
    marks = {name: _mark(tensor) for name, tensor in given.items()}
    before = {name: tensor.clone() for name, tensor in given.items()}
    outputs = run_reference(loaded, model, inputs)
    own = model.state_dict()
    others = {*others, *(name for name, mark in marks.items() if _mark(own[name]) != mark)}
    changing = {
        name: tensor for name, tensor in before.items() if name in others or not has_same_bits(tensor, own[name])
    }
    if changing:
        outputs = _add_state(outputs, {name: own[name] for name in changing})
        write_state(model, changing)
    return outputs, changing


def _mark(tensor: Tensor) -> tuple[int, int]:
    """Return what changes if an operator writes the tensor, or a module replaces it."""
    return tensor.data_ptr(), read_version(tensor)


def _add_state(outputs: FlatOutputs, state: Mapping[str, Tensor]) -> FlatOutputs:
    """Copy the state, which is about to change, and outputs that share its memory."""
    changing = {memory_of(tensor) for tensor in state.values()}
    tensors = (*outputs.tensors, *state.values())
    copies = (tensor.clone() if memory_of(tensor) in changing else tensor for tensor in tensors)
    return replace(outputs.with_state(state), tensors=tuple(copies))


def estimate_float64_bytes(
    model: nn.Module, inputs: Sequence[Any], outputs: Sequence[Tensor], work_bytes: int | None = None
) -> int:
    """Exclude memory in use. `work_bytes` are a call's intermediates in the reference's dtype; None if unknown."""
    tensors = (*model.parameters(), *model.buffers(), *outputs, *list_tensors(inputs))
    elements = sum(tensor.numel() for tensor in tensors)
    if work_bytes is None:
        return int(elements * 8 * INTERMEDIATES)
    narrowest = min((tensor.element_size() for tensor in outputs if tensor.is_floating_point()), default=4)
    return elements * 8 + work_bytes * 8 // narrowest


def copy_tensors(inputs: Sequence[Any], device: torch.device | None = None) -> tuple[Any, ...]:
    """Protect inputs from references that work in place. Dense tensors keep strides."""

    def make_copy(tensor: Tensor) -> Tensor:
        return tensor.detach().clone() if device is None else tensor.detach().to(device, copy=True)

    return keep_seed(map_tensors(tuple(inputs), make_copy), inputs)


def detach_tensors(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Share memory, but not flags such as `requires_grad`, which a reference may set."""
    return keep_seed(map_tensors(tuple(inputs), torch.Tensor.detach), inputs)


def keep_on_host(outputs: FlatOutputs) -> FlatOutputs:
    return replace(outputs, tensors=tuple(copy_to(tensor, HOST) for tensor in outputs.tensors))


def _compute_exact(
    model: nn.Module,
    inputs: Sequence[Any],
    own: FlatOutputs,
    names: tuple[str, ...],
    *,
    device: torch.device | None,
    graphs: CallGraphs | None,
) -> Truth:
    try:
        with limit_memory(device or own.tensors[0].device):
            precise = copy.deepcopy(model).double()
            wide = map_tensors(tuple(inputs), lambda tensor: _to_double(tensor, device))
            with widened():
                exact = call_model(precise, wide, graphs)
            exact = exact.with_state(read_state(precise, names))
            exact = exact if device is None else keep_on_host(exact)
    except Exception as error:  # noqa: BLE001 - user code, which may assert its dtype, and a lack of memory
        reason = f"the reference does not run in float64: {type(error).__name__}: {error}"[:500]
        return trust_outputs(own, reason, names, compared_on=device)
    reason = _find_other_form(own, exact)
    if reason:
        return trust_outputs(own, reason, names, compared_on=device)
    leaves = _pair_leaves(own, exact.tensors, device)
    return Truth(kind="float64", tree=own.tree, leaves=leaves, state_names=names)


def _find_other_form(own: FlatOutputs, exact: FlatOutputs) -> str:
    if exact.tree != own.tree:
        return "the reference returns another structure in float64"
    for ours, theirs in zip(own.tensors, exact.tensors, strict=True):
        if ours.shape != theirs.shape or theirs.dtype != _float64_dtype(ours.dtype):
            return f"in float64 the reference returns {theirs.dtype} {tuple(theirs.shape)}"
        if _exceeds(theirs, ours):
            return f"in float64 the reference returns values beyond {ours.dtype}, such as the largest of its dtype"
    return ""


def _exceeds(exact: Tensor, own: Tensor) -> bool:
    """Return True if finite values exceed the range of the dtype of `own`, which is finite there."""
    if not own.is_floating_point() or not own.numel():
        return False
    if max(map(abs, map(float, exact.aminmax()))) <= torch.finfo(own.dtype).max:
        return False
    return bool((widen_small(exact.to(own.dtype)).isinf() & exact.isfinite() & widen_small(own).isfinite()).any())


def trust_outputs(
    own: FlatOutputs,
    note: str = "",
    state_names: tuple[str, ...] = (),
    *,
    compared_on: torch.device | None = None,
) -> Truth:
    """Use the reference's outputs and state as their own truth."""
    leaves = _pair_leaves(own, own.tensors, compared_on)
    return Truth(kind="reference", tree=own.tree, leaves=leaves, note=note, state_names=state_names)


def _pair_leaves(
    own: FlatOutputs, exact: Sequence[Tensor], compared_on: torch.device | None = None
) -> tuple[TruthLeaf, ...]:
    names = ["output"] if len(exact) == 1 else list(_name_leaves(own.tree, "output"))
    return tuple(
        TruthLeaf(name=name, reference=ours, exact=theirs, compared_on=compared_on)
        for name, ours, theirs in zip(names, own.tensors, exact, strict=True)
    )


def _name_leaves(tree: dict[str, Any], path: str) -> Iterator[str]:
    ((kind, value),) = tree.items()
    if kind == "dict" and [key for key, _ in value] == ["output", "state"]:  # see `add_state`
        for key, item in value:
            yield from _name_leaves(item, key)
    elif kind == "t":
        yield path
    elif kind == "dict":
        for key, item in value:
            yield from _name_leaves(item, f"{path} {key}")
    elif kind != "v":
        for index, item in enumerate(value):
            yield from _name_leaves(item, f"{path} {index}")


def _to_double(tensor: Tensor, device: torch.device | None) -> Tensor:
    """Convert on the device. Tensors in host memory are converted there in parts, since the host is slow."""
    target, dtype = device or tensor.device, _float64_dtype(tensor.dtype)
    if tensor.device == target or not tensor.is_contiguous():
        return tensor.to(device=target, dtype=dtype, copy=True)
    double = torch.empty(tensor.shape, dtype=dtype, device=target)
    given, made = tensor.flatten(), double.flatten()
    for first in range(0, tensor.numel(), PART_ELEMENTS):
        made[first : first + PART_ELEMENTS] = given[first : first + PART_ELEMENTS].to(target)
    return double


def _float64_dtype(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype
