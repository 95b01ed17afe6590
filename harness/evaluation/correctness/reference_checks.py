"""Checks whether a reference is usable. Failures are faults of the problem or the machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor, nn

from harness.domain import LIBRARY_CLASS, ProblemError, ProblemTooLarge, WireError
from harness.evaluation.correctness.allowed_errors import FLOORS
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.truth import (
    Truth,
    copy_tensors,
    list_state,
    read_state,
    run_reference,
    run_with_state,
    trust_outputs,
    write_state,
)
from harness.problems.inputs.conformity import find_violation
from harness.problems.loading import LoadedProblem
from harness.protocol import list_leaves
from harness.sandbox.devices import Device
from harness.sandbox.memory_limits import USABLE_SHARE, count_free_bytes, is_out_of_memory, limit_memory
from harness.sandbox.worker_client import describe
from harness.tensors.outputs import Difference, FlatOutputs, find_difference, flatten_tensors, widen_small
from harness.tensors.overlaps import find_overlapping
from harness.tensors.single_pass import find_kernels
from harness.tensors.values import (
    SLICE_ELEMENTS,
    count_bytes,
    cut_slices,
    has_same_bits,
    list_memory,
    list_tensors,
    read_version,
)

if TYPE_CHECKING:
    from harness.evaluation.correctness.reference import Reference

INPUT_SHAPES = "shapes of what get_inputs() returns"
OUTPUT_FORM = "structure, shapes or plain numbers of what forward returns"
IN_INIT = "make them in __init__, so that candidates can be given the same ones"


def compare_runs(
    loaded: LoadedProblem, first: FlatOutputs, second: FlatOutputs, find_truth: Callable[[], Truth]
) -> Difference | None:
    """Raises ProblemError beyond the problem's tolerance. A difference that is slight beside the largest values passes
    if there is a float64 truth: if most of an output is near zero, sums before it may be far larger.
    """
    if first.has_form_of(second) and all(map(has_same_bits, second.tensors, first.tensors)):
        return None
    expected = trust_outputs(first, compared_on=second.tensors[0].device)
    outcome, trial = compare_outputs(expected, second, loaded.problem.tolerance, "as_given")
    if outcome is not None and not (
        all(map(_differ_slightly, first.tensors, second.tensors)) and find_truth().kind == "float64"
    ):
        raise ProblemError(
            f"{_name_file(loaded)}: two runs of the reference on the same inputs differ by more than its own "
            f"tolerance: {trial.message}; if forward draws random numbers, declare SEEDED_CALLS = True; else widen "
            "TOLERANCE"
        )
    return find_difference(second.tensors, first.tensors)


def run_library(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    state: Mapping[str, Tensor],
    device: torch.device,
) -> FlatOutputs:
    """Call the class of `--baseline library` with the reference's weights and this state. Raises ProblemError."""
    library = loaded.make_model(0, device, entry=LIBRARY_CLASS)
    own = library.state_dict()
    write_state(library, {name: one for name, one in {**model.state_dict(), **state}.items() if name in own})
    return run_with_state(loaded, library, copy_tensors(tuple(inputs)), state)


def _differ_slightly(first: Tensor, second: Tensor) -> bool:
    if first.shape != second.shape:
        return False
    difference, floor = find_difference([second], [first]), FLOORS.get(first.dtype)
    if difference is None or floor is None:
        return difference is None
    largest = float(first.abs().max())
    return math.isfinite(largest) and difference.largest <= floor.rtol * largest


def require_finite(loaded: LoadedProblem, truth: Truth) -> None:
    """Raises ProblemError for all-NaN outputs, and non-finite ones where the float64 truth is finite."""
    for leaf in truth.leaves:
        bad = ~widen_small(leaf.reference).isfinite()
        if not bad.any():
            continue
        if leaf.reference.isnan().all():
            raise ProblemError(f"{_name_file(loaded)}: {leaf.name} of the reference is all NaN; correct it")
        wrong = int((bad & widen_small(leaf.exact.to(leaf.reference.dtype)).isfinite()).sum())
        if wrong:
            raise ProblemError(
                f"{_name_file(loaded)}: {wrong} of {bad.numel()} elements of {leaf.name} of the reference are infinite "
                f"or NaN where float64 is finite; use smaller inputs, or a wider dtype for intermediates"
            )


def require_device(loaded: LoadedProblem, outputs: FlatOutputs, device: torch.device) -> None:
    """Raises ProblemError for outputs on another device, for example by `torch.tensor(...)` without a device."""
    elsewhere = next((tensor.device for tensor in outputs.tensors if tensor.device.type != device.type), None)
    if elsewhere is not None:
        raise ProblemError(f"{_name_file(loaded)}: forward returned a tensor on {elsewhere}; return it on {device}")


def require_narrow(loaded: LoadedProblem, outputs: FlatOutputs) -> None:
    """Raises ProblemError if the problem's tolerance accepts an output of zeros. The comparison would refuse zeros for
    lost values, but would miss other errors.
    """
    tolerance = loaded.problem.tolerance
    if not tolerance.is_fixed:
        return
    for number, own in enumerate(outputs.tensors):
        sizes, atol = own.abs(), (tolerance.atol or 0.0) if own.is_floating_point() else 0.0
        beyond = int((sizes * (1.0 - (tolerance.rtol or 0.0)) > atol).count_nonzero())
        if own.count_nonzero() and beyond <= (1.0 - tolerance.matched) * own.numel():
            raise ProblemError(
                f"{_name_file(loaded)}: output {number} would be within TOLERANCE if it were all zeros: only "
                f"{beyond} of its {own.numel()} elements are beyond it; narrow it"
            )


def require_usable_inputs(loaded: LoadedProblem, inputs: Sequence[Any]) -> None:
    """Raises ProblemError for values that cannot be sent to another process, or are not as stated."""
    violation = find_violations(loaded, inputs)
    if violation:
        raise ProblemError(f"{_name_file(loaded)}: get_inputs(): {violation}")
    for call, values in (("get_init_inputs()", loaded.init_inputs), ("get_inputs()", inputs)):
        try:
            flatten_tensors(tuple(values))
        except WireError as error:
            raise ProblemError(
                f"{_name_file(loaded)}: {call}: {error}; return tensors, numbers, strings, or lists, "
                "tuples and dicts of them"
            ) from error


def find_violations(loaded: LoadedProblem, inputs: Sequence[Any]) -> str:
    """Return "" if one draw is as the problem states."""
    pairs = zip(list_leaves(inputs), loaded.list_contracts(inputs), strict=True)
    found = [(contract, find_violation(leaf, contract)) for leaf, contract in pairs if contract.is_stated]
    violated = [f"INPUTS states that {contract}, but {what}" for contract, what in found if what]
    return "; ".join(violated) + ("; correct INPUTS or get_inputs" if violated else "")


def require_dtype_applies(loaded: LoadedProblem, values: Sequence[Tensor]) -> None:
    """Raises ProblemError unless the dtype chosen for a problem changes all floating values."""
    precision = loaded.problem.precision
    if precision and not any(tensor.is_floating_point() for tensor in values):
        raise ProblemError(f"{_name_file(loaded)} has no floating-point inputs or weights")
    if precision and any(tensor.is_complex() for tensor in values):
        raise ProblemError(f"{_name_file(loaded)} has complex inputs or weights, which have no {precision}")


def require_repeatable(loaded: LoadedProblem, inputs: Sequence[Tensor], again: Sequence[Tensor]) -> None:
    """Make inputs again from their seed instead of keeping them. Raises ProblemError."""
    dense = [(one, other) for one, other in zip(inputs, again, strict=True) if one.layout is torch.strided]
    if not all(one.shape == other.shape and has_same_bits(one, other) for one, other in dense):
        raise ProblemError(
            f"{_name_file(loaded)}: get_inputs() returns other values when it is seeded and called again; draw them "
            "with the global generators of torch, numpy and random"
        )


def require_weights_known(loaded: LoadedProblem, model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Raises ProblemError if the first call created weights."""
    made = sorted(list_state(model).keys() - state.keys())
    if made:
        raise ProblemError(f"{_name_file(loaded)}: the first call made the weights {', '.join(made[:5])}; {IN_INIT}")


def refuse_varying(loaded: LoadedProblem, what: str) -> NoReturn:
    """Raises ProblemError."""
    raise ProblemError(f"{_name_file(loaded)}: {describe_varying(what)}")


def describe_varying(what: str) -> str:
    return (
        f"the {what} change with the seed; make them alike for every seed, for example by lengths that are drawn with "
        "a fixed sum, and draw sizes with RANGES if they shall vary"
    )


def has_only_numbers(outputs: FlatOutputs) -> bool:
    return all(map(_holds_only_numbers, outputs.tensors))


def _holds_only_numbers(tensor: Tensor) -> bool:
    if kernels := find_kernels(tensor):
        _, _, special = kernels.find_extremes(tensor)
        return not special
    return all(bool(widen_small(part).isfinite().all()) for _, (part,) in cut_slices(tensor, elements=SLICE_ELEMENTS))


def find_largest(tensor: Tensor) -> float:
    values = tensor.float() if tensor.element_size() == 1 else tensor  # 8-bit formats have no minimum
    return max(map(abs, map(float, values.aminmax()))) if values.numel() else 0.0


def find_largest_output(outputs: FlatOutputs) -> float:
    return max((find_largest(tensor) for tensor in outputs.tensors if tensor.is_floating_point()), default=0.0)


def measure_inputs(loaded: LoadedProblem) -> int:
    """Return bytes without allocating; 0 if unknown."""
    sizes = loaded.describe_inputs()
    return sum(prod(shape) * getattr(torch, dtype).itemsize for dtype, shape in sizes)


def require_memory(loaded: LoadedProblem, needed_bytes: int, free_bytes: int, name: str) -> None:
    """Raises ProblemTooLarge."""
    if needed_bytes > free_bytes * USABLE_SHARE:
        raise ProblemTooLarge(
            f"{_name_file(loaded)}: an evaluation takes at least {needed_bytes >> 20} MiB of {name}, "
            f"{free_bytes >> 20} MiB are free; end other programs, take a larger device, or choose the small workload"
        )


def does_succeed(reference: Reference, seed: int, step: str) -> bool:
    """Return whether the reference succeeds with these inputs."""
    known, key = reference.truths.succeeds, (seed, step)
    if key not in known:
        try:
            reference.outputs_of(reference.make_inputs(*key))
            known[key] = True
        except ProblemError:
            known[key] = False
    return known[key]


@contextmanager
def contain_memory(loaded: LoadedProblem, device: torch.device) -> Iterator[None]:
    """Convert out-of-memory errors to ProblemTooLarge (see `limit_memory`)."""
    try:
        with limit_memory(device):
            yield
    except (ProblemError, RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        raise ProblemTooLarge(
            f"{_name_file(loaded)}: the reference needs more memory than there is on {device} "
            f"({count_free_bytes(device) >> 20} MiB are free); choose the small workload, or make it need less: "
            f"{str(error)[-200:]}"
        ) from error


def _name_file(loaded: LoadedProblem) -> str:
    return f"{loaded.problem.suite}/{loaded.problem.name}.py"


def may_share_memory(inputs: Sequence[Any], used: Sequence[Any]) -> bool:
    """If True, copies are needed before a reference may work in place."""
    tensors = list_tensors(used)
    overlaps = any(0 in tensor.stride() for tensor in tensors if tensor.layout is torch.strided)
    return overlaps or len(list_memory(used)) < len(tensors) or bool(list_memory(inputs) & list_memory(used))


def list_shapes(inputs: Sequence[Any]) -> list[torch.Size]:
    return [tensor.shape for tensor in list_tensors(inputs)]


def list_versions(inputs: Sequence[Any]) -> list[int]:
    """An operator that works in place counts, also if it happens to change nothing."""
    return list(map(read_version, list_tensors(inputs)))


def have_changed(inputs: Sequence[Any], used: Sequence[Any]) -> bool:
    pairs = zip(list_tensors(inputs), list_tensors(used), strict=True)
    return not all(has_same_bits(before, after) for before, after in pairs if before.layout is torch.strided)


def find_format_bits(tensors: Sequence[Tensor], *, allow_tf32: bool) -> int:
    values = [tensor for tensor in tensors if tensor.dtype is not torch.bool]
    if any(tensor.element_size() == 1 for tensor in values):
        return 0
    sizes = {tensor.element_size() for tensor in values if tensor.is_floating_point()}
    return 16 if allow_tf32 or 2 in sizes else 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRun:
    outputs: FlatOutputs
    call_s: float
    work_bytes: int | None
    views: frozenset[int]
    alike: frozenset[int]  # outputs that share elements with other outputs


def run_again(
    loaded: LoadedProblem, model: nn.Module, inputs: Sequence[Any], device: Device, changing: Iterable[str]
) -> SecondRun:
    copies = copy_tensors(inputs, device.torch_device)
    device.synchronize()
    device.watch_peak()
    began_s = time.perf_counter()
    outputs = run_reference(loaded, model, copies)
    device.synchronize()
    call_s = time.perf_counter() - began_s
    peak_bytes = device.read_peak()
    given = [copies, [value for value in model.state_dict().values() if torch.is_tensor(value)]]
    views = frozenset(at for at, one in enumerate(outputs.tensors) if list_memory([one]) & list_memory(given))
    return SecondRun(
        outputs=outputs.with_state(read_state(model, changing)),
        call_s=call_s,
        work_bytes=None if peak_bytes is None else max(peak_bytes - count_bytes(outputs.tensors), 0),
        views=views,
        alike=find_overlapping([one.data_ptr() for one in outputs.tensors], [*map(describe, outputs.tensors)]),
    )
