"""Decides whether a problem is fit for scoring: the reference passes its own comparison, and cheap fakes fail.

A fake replaces one output by zeros, a constant, the input, the output for other inputs, 99 % of the right values, or
the computation in a coarser format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import Outcome, Problem, ProblemError, Trial
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.reference_checks import require_narrow
from harness.evaluation.correctness.truth import (
    Truth,
    compute_truth,
    copy_tensors,
    run_and_compare_state,
    run_with_state,
    write_state,
)
from harness.problems.loading import LoadedProblem
from harness.problems.tensor_slices import has_same_bits
from harness.problems.tensor_trees import list_tensors, map_tensors
from harness.sandbox.seeding import have_advanced, keep_seed, read_generators, seed_call
from harness.sandbox.tensors.outputs import FlatOutputs, find_difference, widen_small

# The format that a candidate would use to save on precision.
COARSER = {
    torch.float64: torch.float32,
    torch.float32: torch.bfloat16,
    torch.float16: torch.float8_e4m3fn,
    torch.bfloat16: torch.float8_e4m3fn,
}
CHANGES_INPUTS = "the reference changes its inputs; declare IN_PLACE = True, or work on a copy in forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    passed: bool
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """`case`: "" without cases."""

    problem: str
    workload: str
    checks: tuple[Check, ...]
    case: str = ""

    @property
    def admitted(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)


@dataclass(frozen=True, slots=True)
class _Run:
    """`stale`: the outputs for another seed."""

    loaded: LoadedProblem
    model: nn.Module
    device: torch.device
    seed: int
    inputs: tuple[Any, ...]
    truth: Truth
    stale: FlatOutputs
    changing: dict[str, Tensor]  # state that calls change, as before each call

    @property
    def problem(self) -> Problem:
        return self.loaded.problem


def admit_problem(loaded: LoadedProblem, device: torch.device, seed: int) -> Admission:
    """A reference that fails is a failed check."""
    try:
        with torch.no_grad():
            checks = tuple(_run_checks(_run_reference_twice(loaded, device, seed)))
    except ProblemError as error:
        checks = (Check(name="runs", passed=False, evidence=str(error)),)
    return Admission(problem=loaded.problem.name, workload=loaded.workload, checks=checks)


def reject_unread(name: str, error: ProblemError) -> Admission:
    return Admission(problem=name, workload="none", checks=(Check(name="loads", passed=False, evidence=str(error)),))


def _run_reference_twice(loaded: LoadedProblem, device: torch.device, seed: int) -> _Run:
    model = loaded.make_model(seed, device)
    inputs, generators = loaded.make_inputs(seed, device), read_generators(device)
    stale, changing = run_and_compare_state(loaded, model, loaded.make_inputs(seed + 1, device))
    if loaded.problem.seeded_calls and have_advanced(generators, device):
        inputs = seed_call(inputs, seed)
    truth = compute_truth(loaded, model, inputs, state=changing)
    require_narrow(loaded, truth.reference_outputs)
    return _Run(loaded, model, device, seed, inputs, truth, stale, changing)


def _run_checks(run: _Run) -> Iterator[Check]:
    yield _check_sizes(run)
    yield _check_finite(run.truth, "finite")
    yield _check_seeds(run)
    yield _check_reference(run)
    if _shapes(run.stale) != _shapes(run.truth.reference_outputs):
        evidence = f"{_shapes(run.truth.reference_outputs)}, for other inputs {_shapes(run.stale)}"
        yield Check(name="stable shapes", passed=False, evidence=evidence)
        return
    for name, forge in FAKES.items():
        yield _check_fake(run, name, forge)
    yield _check_cast(run)
    for distribution in run.problem.distributions:
        if distribution != "as_given":
            yield _check_distribution(run, distribution)


def _check_sizes(run: _Run) -> Check:
    outputs = run.truth.reference_outputs
    least = min(tensor.numel() for tensor in outputs.tensors)
    return Check(name="outputs have elements", passed=least > 0, evidence=_shapes(outputs))


def _check_finite(truth: Truth, name: str) -> Check:
    bad = sum(int((~widen_small(leaf.reference).isfinite()).sum()) for leaf in truth.leaves)
    return Check(name=name, passed=bad == 0, evidence=f"{bad} elements are infinite or NaN")


def _check_seeds(run: _Run) -> Check:
    one, again, other = (run.loaded.make_inputs(run.seed + step, run.device) for step in (0, 0, 1))
    if not _equal(one, again):
        evidence = "the same seed gives other inputs"
    elif _equal(one, other):
        evidence = "another seed gives the same inputs; draw them with torch.rand, randn or randint"
    else:
        return Check(name="inputs follow the seed", passed=True, evidence="equal for equal seeds, else different")
    return Check(name="inputs follow the seed", passed=False, evidence=evidence)


def _check_reference(run: _Run) -> Check:
    """It passes, is repeatable, and changes no inputs unless its problem says so."""
    name, own = "reference passes, twice", run.truth.reference_outputs
    first = _compare(run, own)
    write_state(run.model, run.changing)
    inputs = copy_tensors(run.inputs) if run.problem.in_place else run.inputs
    again = run_with_state(run.loaded, run.model, inputs, run.changing)
    apart = _compare_runs(run, again)
    if not _equal(run.inputs, run.loaded.make_inputs(run.seed, run.device)):
        return Check(name=name, passed=False, evidence=CHANGES_INPUTS)
    if apart.outcome is not None:
        return Check(name=name, passed=False, evidence=f"two runs differ: {apart.message}")
    difference = find_difference(again.tensors, own.tensors)
    if difference is not None and run.problem.deterministic:
        evidence = f"two runs differ: {difference}; make it deterministic, or remove DETERMINISTIC = True"
        return Check(name=name, passed=False, evidence=evidence)
    runs = "bit-identical" if difference is None else f"equal within the floor ({difference})"
    evidence = f"{first.message}; runs are {runs}; truth: {run.truth.kind} {run.truth.note}".rstrip()
    return Check(name=name, passed=first.outcome is None, evidence=evidence)


def _compare_runs(run: _Run, again: FlatOutputs) -> _Verdict:
    """Against the first run, since the float64 truth allows for the reference's own error."""
    leaves = tuple(replace(leaf, exact=leaf.reference) for leaf in run.truth.leaves)
    first = replace(run.truth, kind="reference", leaves=leaves)
    return _read(compare_outputs(first, again, run.problem.tolerance, "as_given"))


def _check_fake(run: _Run, name: str, forge: Callable[[_Run, int], Sequence[Tensor]]) -> Check:
    """Inputs that the call leaves as they are are outputs, too, where it changes others."""
    tried, evidence = 0, ""
    for index, leaf in enumerate(run.truth.output_leaves):
        if run.problem.in_place and any(_are_equal(leaf.reference, one) for one in list_tensors(run.inputs)):
            continue
        for fake in forge(run, index):
            tried += 1
            verdict = _compare(run, _replace_output(run.truth, index, fake))
            if verdict.outcome is None:
                return Check(name=name, passed=False, evidence=f"{leaf.name}: accepted; {verdict.message}")
            evidence = evidence or verdict.message
    return Check(name=name, passed=True, evidence=evidence or "not applicable: no input fits an output")


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype) and has_same_bits(one, other)


def _check_cast(run: _Run) -> Check:
    name = "coarser format"
    tensors = list_tensors([run.inputs, list(run.model.state_dict().values())])
    tensors += [leaf.reference for leaf in run.truth.leaves]
    if not any(tensor.dtype in COARSER for tensor in tensors):
        return Check(name=name, passed=True, evidence="not applicable: no floating-point values")
    verdict = _compare(run, _run_coarsely(run))
    evidence = verdict.message if verdict.outcome else f"accepted; {verdict.message}"
    return Check(name=name, passed=verdict.outcome is not None, evidence=evidence)


def _run_coarsely(run: _Run) -> FlatOutputs:
    model = run.loaded.make_model(run.seed, run.device)
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.copy_(round_coarser(tensor))
    inputs = keep_seed(map_tensors(copy_tensors(run.inputs), round_coarser), run.inputs)
    outputs = run_with_state(run.loaded, model, inputs, run.changing)
    return replace(outputs, tensors=tuple(round_coarser(tensor) for tensor in outputs.tensors))


def round_coarser(tensor: Tensor) -> Tensor:
    """Keeps the dtype; integers stay."""
    coarser = COARSER.get(tensor.dtype)
    return tensor if coarser is None else tensor.to(coarser).to(tensor.dtype)


def _check_distribution(run: _Run, distribution: str) -> Check:
    inputs = run.loaded.make_inputs(run.seed, run.device, distribution)
    truth = compute_truth(run.loaded, run.model, inputs, state=run.changing)
    finite = _check_finite(truth, f"inputs: {distribution}")
    if not finite.passed:
        return finite
    verdict = _read(compare_outputs(truth, truth.reference_outputs, run.problem.tolerance, distribution))
    return replace(finite, passed=verdict.outcome is None, evidence=verdict.message)


def _forge_zeros(run: _Run, index: int) -> list[Tensor]:
    return [torch.zeros_like(run.truth.leaves[index].reference)]


def _forge_constant(run: _Run, index: int) -> list[Tensor]:
    """The mean; for a single number, that of the stale output."""
    reference = run.truth.leaves[index].reference
    known = reference if reference.numel() > 1 else run.stale.tensors[index]
    mean = (known if known.is_complex() else known.double()).mean()
    return [torch.full_like(reference, mean.item())]


def _forge_identity(run: _Run, index: int) -> list[Tensor]:
    """Inputs that have, or can be broadcast, reshaped or cut to, the output's shape."""
    reference = run.truth.leaves[index].reference
    fakes = []
    for tensor in list_tensors(run.inputs):
        if tensor.numel() >= reference.numel():
            fakes.append(tensor.reshape(-1)[: reference.numel()].reshape(reference.shape))
        if _broadcasts(tensor, reference):
            fakes.append(tensor.expand(reference.shape))
    return [fake.to(reference.dtype) for fake in fakes]


def _forge_stale(run: _Run, index: int) -> list[Tensor]:
    return [run.stale.tensors[index]]


def _forge_partial(run: _Run, index: int) -> list[Tensor]:
    """The last 1 %, or twice as much as the problem's tolerance accepts, holds zeros, NaN or stale values."""
    reference, accepted = run.truth.leaves[index].reference, 1.0 - run.problem.tolerance.matched
    share = min(max(0.01, 2 * accepted), 1.0)
    start = reference.numel() - max(int(reference.numel() * share), 1)
    poison = float("nan") if reference.dtype.is_floating_point else 1
    endings = (torch.zeros_like(reference), torch.full_like(reference, poison), run.stale.tensors[index])
    return [_join(reference, ending, start) for ending in endings]


def _join(beginning: Tensor, ending: Tensor, start: int) -> Tensor:
    joined = beginning.clone(memory_format=torch.contiguous_format)
    joined.view(-1)[start:] = ending.reshape(-1)[start:]
    return joined


FAKES: dict[str, Callable[[_Run, int], list[Tensor]]] = {
    "zeros": _forge_zeros,
    "constant": _forge_constant,
    "identity": _forge_identity,
    "stale buffer": _forge_stale,
    "99 % partial": _forge_partial,
}


@dataclass(frozen=True, slots=True)
class _Verdict:
    outcome: Outcome | None
    message: str


def _compare(run: _Run, outputs: FlatOutputs) -> _Verdict:
    return _read(compare_outputs(run.truth, outputs, run.problem.tolerance, "as_given"))


def _read(judged: tuple[Outcome | None, Trial]) -> _Verdict:
    outcome, trial = judged
    return _Verdict(outcome, trial.message or _rate(trial.worst_ratio))


def _rate(worst_ratio: float | None) -> str:
    return "no ratio" if worst_ratio is None else f"{worst_ratio:.2g} of the allowed error"


def _replace_output(truth: Truth, index: int, fake: Tensor) -> FlatOutputs:
    outputs = truth.reference_outputs
    return replace(outputs, tensors=(*outputs.tensors[:index], fake, *outputs.tensors[index + 1 :]))


def _broadcasts(tensor: Tensor, reference: Tensor) -> bool:
    if tensor.dim() > reference.dim():
        return False
    sizes = reference.shape[reference.dim() - tensor.dim() :]
    return all(have in (1, want) for have, want in zip(tensor.shape, sizes, strict=True))


def _shapes(outputs: FlatOutputs) -> str:
    return ", ".join(f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}" for tensor in outputs.tensors)


def _equal(one: Any, other: Any) -> bool:
    first, second = list_tensors(one), list_tensors(other)
    same = len(first) == len(second) and all(a.shape == b.shape for a, b in zip(first, second, strict=True))
    return same and all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
