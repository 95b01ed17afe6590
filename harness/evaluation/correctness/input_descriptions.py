"""Describes in plain words what the inputs of a problem may be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from harness.domain import InputContract, Problem, ProblemError, ReferenceStopped
from harness.problems.watched_process import run_apart

if TYPE_CHECKING:
    from harness.problems.loading import LoadedProblem

UNKNOWN = "unknown: not stated, and too large to draw without smaller sizes"
MOST_ELEMENTS = 1 << 26  # of inputs at their own sizes


def describe_contracts(problem: Problem) -> dict[str, str]:
    """Return words by argument of `forward`. Runs the reference twice at small sizes, in another process."""
    stated = {one.argument: one.describe_source() for one in problem.inputs}
    try:
        found = run_apart(_infer, problem)
    except ReferenceStopped:
        raise
    except ProblemError:
        return stated or {"inputs": UNKNOWN}
    words: dict[str, list[str]] = {}
    for one in found:
        words.setdefault(one.argument, []).append(one.describe_source())
    return stated | {argument: "; ".join(dict.fromkeys(lines)) for argument, lines in words.items()}


def _infer(problem: Problem) -> tuple[InputContract, ...]:
    """Raises ProblemError."""
    from harness.problems.loading import load_problem
    from harness.problems.shrink import EMULATED_BUDGET, PATIENT_BUDGET, keep_sizes, reduce_problem

    last = problem.workloads[-1].name
    if last != "full":
        return _infer_from(load_problem(problem, last))
    reduced = reduce_problem(problem, EMULATED_BUDGET) or keep_sizes(problem, PATIENT_BUDGET)
    if reduced is not None:
        return _infer_from(load_problem(reduced, "reduced"))
    whole = load_problem(problem, "full")
    if sum(math.prod(shape) for _, shape in whole.describe_inputs()) > MOST_ELEMENTS:
        raise ProblemError(f"{problem.name}: {UNKNOWN}")
    return _infer_from(whole, runs=False)


def _infer_from(loaded: LoadedProblem, *, runs: bool = True) -> tuple[InputContract, ...]:
    """Without a run of the reference, infer from draws alone."""
    import torch

    from harness.construction.weights import HOST
    from harness.evaluation.correctness.input_plan import infer_contracts, watch_reference
    from harness.problems.inputs.rare import Draws
    from harness.problems.operators import NO_USE

    with torch.no_grad():
        inputs = loaded.make_inputs(0, HOST)
        use = watch_reference(loaded, loaded.make_model(0, HOST), inputs, {}, HOST) if runs else None
        return tuple(infer_contracts(loaded, inputs, use or NO_USE, Draws(), HOST))
