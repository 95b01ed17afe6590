"""Decides for each workload and case of a problem whether it is fit for scoring.

Cases of the small workload are checked there, and run once at their own sizes, on torch's meta device or, if the
reference does not run there, on `device`. Other cases are checked at the small sizes for dtype, distribution and
tolerance. Without a small workload all cases are checked at their own sizes. Drawn sizes are checked at both ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import torch

from harness.construction.random_weights import HOST
from harness.domain import (
    Admission,
    Case,
    CaseSizes,
    Check,
    Problem,
    ProblemError,
    ProblemTooLarge,
    ReferenceStopped,
    SizeRange,
    WorkloadName,
)
from harness.evaluation.correctness.reference_checks import contain_memory
from harness.evaluation.correctness.truth import run_reference
from harness.evaluation.problem_validation import admit_problem
from harness.problems.loading import load_problem

META = torch.device("meta")


def admit_cases(problem: Problem, device: torch.device, seed: int) -> Iterator[Admission]:
    """Yield one admission for each case, and for each workload without cases. Raises ProblemError if the file cannot be
    executed.
    """
    last, whole = problem.workloads[-1].name, replace(problem, cases=())
    if not problem.list_cases(last):
        admission = admit_problem(load_problem(problem, last, device), device, seed)
        yield admission
        if any(check.name == "runs" for check in admission.failed):
            return
    runs_on = device if last == "full" or _find_failure(whole, last, META) else META
    if last != "full" and not problem.cases:
        yield Admission(problem=problem.name, workload="full", checks=(_run_once(whole, runs_on),))
    for case in problem.cases:
        checked = [
            admission for end in _list_ends(case) for admission in _check_case(problem, end, device, seed, runs_on)
        ]
        workload: WorkloadName = last if case.is_part_of(last) else "full"
        checks = tuple(check for admission in checked for check in admission.checks)
        yield Admission(problem=problem.name, workload=workload, checks=checks, case=case.name)


def _check_case(
    problem: Problem, case: Case, device: torch.device, seed: int, runs_on: torch.device
) -> Iterator[Admission]:
    last, draw = problem.workloads[-1].name, random.Random(seed)
    if case.is_part_of(last):
        yield admit_problem(load_problem(problem.take_case(case, last, draw), last, device), device, seed)
    if last != "full":
        check = _run_once(problem.take_case(case, "full", draw), runs_on)
        yield Admission(problem=problem.name, workload="full", checks=(check,), case=case.name)
    if not case.is_part_of(last) and (case.dtype or case.distribution or case.tolerance):
        at_small = problem.take_case(replace(case, sizes=(), small=()), last, draw)
        yield admit_problem(load_problem(at_small, last, device), device, seed)


def _run_once(problem: Problem, device: torch.device) -> Check:
    try:
        failure, evidence = _find_failure(problem, "full", device), f"at its own sizes, on {device}"
    except ProblemTooLarge as error:
        failure, evidence = None, f"not run: {error}"
    return Check(name="runs", passed=failure is None, evidence=failure or evidence)


def _list_ends(case: Case) -> tuple[Case, ...]:
    if not case.is_secret:
        return (case,)
    return tuple(replace(case, sizes=_take_end(case.sizes, end), small=_take_end(case.small, end)) for end in (0, 1))


def _take_end(sizes: CaseSizes, end: int) -> CaseSizes:
    return tuple((name, value.ends[end] if isinstance(value, SizeRange) else value) for name, value in sizes)


def _find_failure(problem: Problem, workload: WorkloadName, device: torch.device) -> str | None:
    """Return why the reference does not run on a device, or None. Raises ProblemTooLarge and ReferenceStopped."""
    try:
        loaded = load_problem(problem, workload, HOST if device is META else device)
        with contain_memory(loaded, HOST if device is META else device):
            run_reference(loaded, loaded.make_model(0, device), loaded.make_inputs(0, device))
    except (ProblemTooLarge, ReferenceStopped):
        raise
    except ProblemError as error:
        return str(error)
    return None
