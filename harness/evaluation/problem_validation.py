"""Decides whether a problem is fit for scoring: the reference passes its own comparison, and cheap fakes fail.

A fake replaces one output by zeros, the input, a stale or partial output, ... and counts if it passes with each of
`DRAWS` seeds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import LIBRARY_CLASS, Admission, Check, Outcome, Problem, ProblemError, ReferenceStopped, Trial
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.reference_checks import (
    INPUT_SHAPES,
    OUTPUT_FORM,
    describe_varying,
    find_violations,
    require_narrow,
    run_library,
)
from harness.evaluation.correctness.truth import (
    Truth,
    TruthLeaf,
    compute_truth,
    copy_tensors,
    run_and_compare_state,
    run_with_state,
    write_state,
)
from harness.problems.loading import LoadedProblem
from harness.tensors.outputs import FlatOutputs, find_difference, widen_small
from harness.tensors.values import (
    count_bytes,
    has_same_bits,
    have_advanced,
    keep_seed,
    list_tensors,
    map_tensors,
    read_generators,
    seed_call,
)

# The format that a candidate would use to save on precision.
COARSER = {
    torch.float64: torch.float32,
    torch.float32: torch.bfloat16,
    torch.float16: torch.float8_e4m3fn,
    torch.bfloat16: torch.float8_e4m3fn,
}
DRAWS = 8
SHAPE_DRAWS, SHAPE_BYTES = 6, 64 << 20  # tried, of inputs of up to this size
DRAWS_NUMBERS = "if forward draws random numbers, declare SEEDED_CALLS = True; else make it deterministic"
CHANGES_INPUTS = "the reference changes its inputs; declare IN_PLACE = True, or work on a copy in forward"


@dataclass(frozen=True, slots=True)
class _Run:
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


class _Draws:
    def __init__(self, first: _Run) -> None:
        self._made = [first]

    @property
    def first(self) -> _Run:
        return self._made[0]

    def __iter__(self) -> Iterator[_Run]:
        for index in range(DRAWS):
            if index == len(self._made):
                self._made.append(
                    _run_reference_twice(self.first.loaded, self.first.device, self.first.seed + 2 * index)
                )
            yield self._made[index]


def admit_problem(loaded: LoadedProblem, device: torch.device, seed: int) -> Admission:
    try:
        with torch.no_grad():
            checks = tuple(_run_checks(_run_reference_twice(loaded, device, seed)))
    except ReferenceStopped:
        raise
    except ProblemError as error:
        checks = (Check(name="runs", passed=False, evidence=str(error)),)
    return Admission(problem=loaded.problem.name, workload=loaded.workload, checks=checks)


def check_values(loaded: LoadedProblem, device: torch.device, seed: int) -> tuple[Check, ...]:
    """Make the checks that take few calls, for full sizes. Raises ProblemError."""
    with torch.no_grad():
        run = _run_reference_twice(loaded, device, seed)
        checks = [_check_sizes(run), _check_finite(run.truth, "finite", allows_infinite=True), _check_reference(run)]
        if all(check.passed for check in checks):  # else most fakes would also pass
            checks += (_check_fake(_Draws(run), name) for name in QUICK_FAKES)
    return tuple(replace(check, evidence=f"at its own sizes: {check.evidence}") for check in checks)


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
    yield _check_finite(run.truth, "finite", allows_infinite=True)
    yield _check_seeds(run)
    if run.problem.inputs:
        yield _check_stated(run)
    yield _check_reference(run)
    if run.loaded.has_library:
        yield _check_library(run)
    shapes = _check_shapes(run)
    yield shapes
    if not shapes.passed:
        return
    draws = _Draws(run)
    for name in FAKES:
        yield _check_fake(draws, name)
    yield _check_cast(draws)
    has_infinite = any(bool(widen_small(leaf.reference).isinf().any()) for leaf in run.truth.leaves)
    for distribution in run.problem.distributions:
        if distribution != "as_given":
            yield _check_distribution(run, distribution, allows_infinite=has_infinite)


def _check_sizes(run: _Run) -> Check:
    outputs = run.truth.reference_outputs
    most, advice = max(tensor.numel() for tensor in outputs.tensors), "; return values that can be compared"
    return Check(name="outputs have elements", passed=most > 0, evidence=_shapes(outputs) + ("" if most else advice))


def _check_finite(truth: Truth, name: str, *, allows_infinite: bool) -> Check:
    bad = sum(_count_special(leaf, allows_infinite=allows_infinite) for leaf in truth.leaves)
    advice = "; draw inputs for which forward is finite, or return without them" if bad else ""
    return Check(name=name, passed=bad == 0, evidence=f"{bad} elements are infinite or NaN{advice}")


def _count_special(leaf: TruthLeaf, *, allows_infinite: bool) -> int:
    own = widen_small(leaf.reference)
    special = ~own.isfinite()
    if allows_infinite and own.is_floating_point():
        special &= own != widen_small(leaf.exact.to(leaf.reference.dtype))
    return int(special.sum())


def _check_seeds(run: _Run) -> Check:
    """Few integers may be equal for some seeds."""
    inputs = (run.loaded.make_inputs(run.seed + step, run.device) for step in range(DRAWS))
    if not _equal(run.inputs, next(inputs)):
        evidence = "the same seed gives other inputs; draw them with the global generators of torch, numpy and random"
    elif all(_equal(run.inputs, other) for other in inputs):
        evidence = "another seed gives the same inputs; draw them with torch.rand, randn or randint"
    else:
        return Check(name="inputs follow the seed", passed=True, evidence="equal for equal seeds, else different")
    return Check(name="inputs follow the seed", passed=False, evidence=evidence)


def _check_stated(run: _Run) -> Check:
    draws = (run.loaded.make_inputs(run.seed + step, run.device) for step in range(SHAPE_DRAWS))
    violation = next(filter(None, (find_violations(run.loaded, inputs) for inputs in draws)), "")
    return Check(name="inputs as stated", passed=not violation, evidence=violation or f"in {SHAPE_DRAWS} draws")


def _check_shapes(run: _Run) -> Check:
    name, own = "stable shapes", run.truth.reference_outputs
    is_small = count_bytes(list_tensors(run.inputs)) <= SHAPE_BYTES
    given = [
        [tensor.shape for tensor in list_tensors(run.loaded.make_inputs(run.seed + step, run.device))]
        for step in range(SHAPE_DRAWS if is_small else 2)
    ]
    if any(shapes != given[0] for shapes in given):
        return Check(name=name, passed=False, evidence=describe_varying(INPUT_SHAPES))
    if not run.stale.has_form_of(own):
        evidence = f"{describe_varying(OUTPUT_FORM)}: {_shapes(own)}, for other inputs {_shapes(run.stale)}"
        return Check(name=name, passed=False, evidence=evidence)
    return Check(name=name, passed=True, evidence="equal for other inputs")


def _check_reference(run: _Run) -> Check:
    """The reference must pass, be repeatable, and change no inputs unless its problem declares it."""
    name, own = "reference passes, twice", run.truth.reference_outputs
    first = _compare(run, own)
    write_state(run.model, run.changing)
    inputs = copy_tensors(run.inputs) if run.problem.in_place else run.inputs
    again = run_with_state(run.loaded, run.model, inputs, run.changing)
    apart = _compare_runs(run, again)
    if not _equal(run.inputs, run.loaded.make_inputs(run.seed, run.device)):
        return Check(name=name, passed=False, evidence=CHANGES_INPUTS)
    if apart.outcome is not None:
        return Check(name=name, passed=False, evidence=f"two runs differ: {apart.message}; {DRAWS_NUMBERS}")
    difference = find_difference(again.tensors, own.tensors)
    if difference is not None and run.problem.deterministic:
        evidence = f"two runs differ: {difference}; make it deterministic, or remove DETERMINISTIC = True"
        return Check(name=name, passed=False, evidence=evidence)
    runs = "bit-identical" if difference is None else f"equal within the floor ({difference})"
    evidence = f"{first.message}; runs are {runs}; truth: {run.truth.kind} {run.truth.note}".rstrip()
    return Check(name=name, passed=first.outcome is None, evidence=evidence)


def _check_library(run: _Run) -> Check:
    """A call that only GPUs have fails on a CPU."""
    try:
        outputs = run_library(run.loaded, run.model, run.inputs, run.changing, run.device)
    except ReferenceStopped:
        raise
    except ProblemError as error:
        needs_gpu = run.device.type == "cpu" and re.search("cuda|nvidia", str(error), re.IGNORECASE) is not None
        return Check(name=LIBRARY_CLASS, passed=needs_gpu, evidence=str(error))
    verdict = _compare(run, outputs)
    return Check(name=LIBRARY_CLASS, passed=verdict.outcome is None, evidence=verdict.message)


def _compare_runs(run: _Run, again: FlatOutputs) -> _Verdict:
    """Compare with the first run, since the float64 truth allows for the reference's own error."""
    leaves = tuple(replace(leaf, exact=leaf.reference) for leaf in run.truth.leaves)
    first = replace(run.truth, kind="reference", leaves=leaves)
    return _read(compare_outputs(first, again, run.problem.tolerance, "as_given"))


def _check_fake(draws: _Draws, name: str) -> Check:
    evidence = ""
    for index, leaf in enumerate(draws.first.truth.output_leaves):
        verdicts = _try_fakes(draws.first, name, index)
        accepted = [at for at, verdict in enumerate(verdicts) if verdict.outcome is None]
        if any(_is_always_accepted(draws, name, index, at) for at in accepted):
            advice = _advise_against_identity(draws.first, leaf.reference) if name == "identity" else ADVICE[name]
            message = f"{leaf.name}: accepted; {verdicts[accepted[0]].message}; {_advise(draws.first, advice)}"
            return Check(name=name, passed=False, evidence=message)
        evidence = evidence or next((one.message for one in verdicts if one.outcome), "")
    return Check(name=name, passed=True, evidence=evidence or "not applicable: no input fits an output")


def _is_always_accepted(draws: _Draws, name: str, index: int, at: int) -> bool:
    found = (_try_fakes(run, name, index) for run in draws)
    return all(at < len(verdicts) and verdicts[at].outcome is None for verdicts in found)


def _try_fakes(run: _Run, name: str, index: int) -> list[_Verdict]:
    leaf = run.truth.leaves[index]
    is_input = run.problem.in_place and any(_are_equal(leaf.reference, one) for one in list_tensors(run.inputs))
    fakes = [] if is_input or not leaf.reference.numel() else FAKES[name](run, index)
    return [_compare(run, _replace_output(run.truth, index, fake)) for fake in fakes]


def _advise(run: _Run, advice: str) -> str:
    return f"{advice}, or narrow TOLERANCE" if run.problem.tolerance.is_fixed else advice


def _advise_against_identity(run: _Run, output: Tensor) -> str:
    if output.numel() > 1 and bool((output == output.reshape(-1)[0]).all()):
        return ADVICE["constant"]
    inputs = list_tensors(run.inputs)
    given = "an input" if any(one.dtype == output.dtype for one in inputs) else f"an input as {_name(output.dtype)}"
    return f"it equals {given}: draw inputs that forward changes, or leave it out"


def _advise_against_coarser(run: _Run) -> str:
    if all(map(_holds_whole_numbers, list_tensors(run.inputs))):
        return f"{UNCLEAR}: draw inputs that are not whole numbers"
    if all(_holds_whole_numbers(leaf.reference) for leaf in run.truth.leaves):
        return f"{UNCLEAR}: return values before they are rounded, counted or compared"
    return f"{UNCLEAR}: return values that a coarser format changes"


def _holds_whole_numbers(tensor: Tensor) -> bool:
    if tensor.is_complex():
        return False
    values = widen_small(tensor)
    return not values.is_floating_point() or bool((values == values.round()).all())


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype) and has_same_bits(one, other)


def _check_cast(draws: _Draws) -> Check:
    """Integers and booleans have no coarser format."""
    name = "coarser format"
    if not any(leaf.reference.is_complex() or leaf.reference.dtype in COARSER for leaf in draws.first.truth.leaves):
        return Check(name=name, passed=True, evidence="not applicable: no floating-point outputs")
    verdict = _Verdict(None, "")
    for run in draws:
        verdict = _compare(run, _run_coarsely(run))
        if verdict.outcome is not None:
            return Check(name=name, passed=True, evidence=verdict.message)
    return Check(
        name=name,
        passed=False,
        evidence=f"accepted; {verdict.message}; {_advise(draws.first, _advise_against_coarser(draws.first))}",
    )


def _run_coarsely(run: _Run) -> FlatOutputs:
    model = run.loaded.make_model(run.seed, run.device)
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.copy_(round_coarser(tensor))
    inputs = keep_seed(map_tensors(copy_tensors(run.inputs), round_coarser), run.inputs)
    outputs = run_with_state(run.loaded, model, inputs, run.changing)
    return replace(outputs, tensors=tuple(round_coarser(tensor) for tensor in outputs.tensors))


def round_coarser(tensor: Tensor) -> Tensor:
    """Keep the dtype; integers stay."""
    if tensor.is_complex():
        return torch.view_as_complex(round_coarser(torch.view_as_real(tensor.resolve_conj())).contiguous())
    coarser = COARSER.get(tensor.dtype)
    return tensor if coarser is None else tensor.to(coarser).to(tensor.dtype)


def _check_distribution(run: _Run, distribution: str, *, allows_infinite: bool) -> Check:
    inputs = run.loaded.make_inputs(run.seed, run.device, distribution)
    truth = compute_truth(run.loaded, run.model, inputs, state=run.changing)
    finite = _check_finite(truth, f"inputs: {distribution}", allows_infinite=allows_infinite)
    if not finite.passed:
        return finite
    verdict = _read(compare_outputs(truth, truth.reference_outputs, run.problem.tolerance, distribution))
    return replace(finite, passed=verdict.outcome is None, evidence=verdict.message)


def _forge_zeros(run: _Run, index: int) -> list[Tensor]:
    return [torch.zeros_like(run.truth.leaves[index].reference)]


def _forge_constant(run: _Run, index: int) -> list[Tensor]:
    """Use the mean; for a single number, that of the stale output."""
    reference = run.truth.leaves[index].reference
    known = reference if reference.numel() > 1 else run.stale.tensors[index]
    mean = (known if known.is_complex() else known.double()).mean()
    return [torch.full_like(reference, mean.item())]


def _forge_identity(run: _Run, index: int) -> list[Tensor]:
    """Use inputs that have, or can be broadcast, reshaped or cut to, the output's shape."""
    reference = run.truth.leaves[index].reference
    fakes = []
    for tensor in list_tensors(run.inputs):
        if tensor.is_complex() and not reference.is_complex():
            continue
        if tensor.numel() >= reference.numel():
            fakes.append(tensor.reshape(-1)[: reference.numel()].reshape(reference.shape))
        if _broadcasts(tensor, reference):
            fakes.append(tensor.expand(reference.shape))
    return [fake.to(reference.dtype) for fake in fakes]


def _forge_stale(run: _Run, index: int) -> list[Tensor]:
    return [run.stale.tensors[index]]


def _forge_partial(run: _Run, index: int) -> list[Tensor]:
    """Replace the last 1 %, or twice the share that the problem's tolerance accepts, by zeros, NaN or stale values."""
    reference, accepted = run.truth.leaves[index].reference, 1.0 - run.problem.tolerance.matched
    share = min(max(0.01, 2 * accepted), 1.0)
    start = reference.numel() - max(int(reference.numel() * share), 1)
    poison = float("nan") if reference.dtype.is_floating_point else 1
    endings = (torch.zeros_like(reference), torch.full_like(reference, poison), run.stale.tensors[index])
    return [_join(reference, ending, start) for ending in endings if ending.shape == reference.shape]


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
QUICK_FAKES = ("zeros", "constant", "stale buffer")

UNCLEAR = "the outputs do not show how precisely they are computed"
OTHER_VALUES = "draw inputs that give it other values, or leave it out"
ADVICE = {
    "zeros": OTHER_VALUES,
    "constant": f"it hardly varies: {OTHER_VALUES}, or return values before they are averaged",
    "stale buffer": "it does not depend on the inputs: compute it from them, or leave it out",
    "99 % partial": "its last elements do not depend on the inputs: compute them from these, or cut them off",
}


@dataclass(frozen=True, slots=True)
class _Verdict:
    outcome: Outcome | None
    message: str


def _compare(run: _Run, outputs: FlatOutputs) -> _Verdict:
    return _read(compare_outputs(run.truth, outputs, run.problem.tolerance, "as_given"))


def _read(evaluated: tuple[Outcome | None, Trial]) -> _Verdict:
    outcome, trial = evaluated
    return _Verdict(
        outcome,
        trial.message or ("no ratio" if trial.worst_ratio is None else f"{trial.worst_ratio:.2g} of the allowed error"),
    )


def _replace_output(truth: Truth, index: int, fake: Tensor) -> FlatOutputs:
    outputs = truth.reference_outputs
    return replace(outputs, tensors=(*outputs.tensors[:index], fake, *outputs.tensors[index + 1 :]))


def _broadcasts(tensor: Tensor, reference: Tensor) -> bool:
    if tensor.dim() > reference.dim():
        return False
    sizes = reference.shape[reference.dim() - tensor.dim() :]
    return all(have in (1, want) for have, want in zip(tensor.shape, sizes, strict=True))


def _shapes(outputs: FlatOutputs) -> str:
    return ", ".join(f"{list(tensor.shape)} {_name(tensor.dtype)}" for tensor in outputs.tensors)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _equal(one: Any, other: Any) -> bool:
    first, second = list_tensors(one), list_tensors(other)
    return len(first) == len(second) and all(map(_are_equal, first, second))
