"""Decides for each workload and case of a problem whether it is fit for scoring.

Cases of the small workload run at their own sizes, on torch's meta device and in time on `device`; others at the small
sizes. Drawn sizes are checked at both ends.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import torch

from harness.construction.weights import HOST
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
from harness.evaluation.problem_validation import admit_problem, check_values
from harness.problems.loading import LoadedProblem, load_problem
from harness.problems.operator_costs import OperatorCosts
from harness.problems.operators import replace_compiler

META = torch.device("meta")
VALUES_S = 4.0  # per problem, to check values at full sizes
CALLS = 8  # of the reference that this takes, with truth and comparisons
ELEMENTS_PER_S, FLOPS_PER_S = 5e8, 2e10  # of a CPU


def admit_cases(problem: Problem, device: torch.device, seed: int) -> Iterator[Admission]:
    """Yield an admission per case, and per workload without cases. Raises ProblemError if nothing can run."""
    last, whole = problem.workloads[-1].name, replace(problem, cases=())
    if not problem.list_cases(last):
        admission = admit_problem(load_problem(problem, last, device), device, seed)
        yield admission
        if any(check.name == "runs" for check in admission.failed):
            return
    full = _FullChecks(device, seed, sum(len(_list_ends(case)) for case in problem.cases) or 1)
    if last != "full" and not problem.cases:
        yield Admission(problem=problem.name, workload="full", checks=full.run(whole))
    for case in problem.cases:
        checked = [admission for end in _list_ends(case) for admission in _check_case(problem, end, device, seed, full)]
        workload: WorkloadName = last if case.is_part_of(last) else "full"
        checks = tuple(check for admission in checked for check in admission.checks)
        yield Admission(problem=problem.name, workload=workload, checks=checks, case=case.name)


def _check_case(
    problem: Problem, case: Case, device: torch.device, seed: int, full: "_FullChecks"
) -> Iterator[Admission]:
    last, draw = problem.workloads[-1].name, random.Random(seed)
    if case.is_part_of(last):
        yield admit_problem(load_problem(problem.take_case(case, last, draw), last, device), device, seed)
    if last != "full":
        checks = full.run(problem.take_case(case, "full", draw))
        yield Admission(problem=problem.name, workload="full", checks=checks, case=case.name)
    if not case.is_part_of(last) and (case.dtype or case.distribution or case.tolerance):
        at_small = problem.take_case(replace(case, sizes=(), small=()), last, draw)
        yield admit_problem(load_problem(at_small, last, device), device, seed)


def _list_ends(case: Case) -> tuple[Case, ...]:
    if not case.is_secret:
        return (case,)
    return tuple(replace(case, sizes=_take_end(case.sizes, end), small=_take_end(case.small, end)) for end in (0, 1))


def _take_end(sizes: CaseSizes, end: int) -> CaseSizes:
    return tuple((name, value.ends[end] if isinstance(value, SizeRange) else value) for name, value in sizes)


class _FullChecks:
    """Runs `count` problems at full sizes. Checks values in `VALUES_S` altogether."""

    def __init__(self, device: torch.device, seed: int, count: int) -> None:
        self._device, self._seed, self._count, self._left_s = device, seed, count, VALUES_S

    def run(self, problem: Problem) -> tuple[Check, ...]:
        """Raises ReferenceStopped."""
        limit_s = self._left_s / self._count
        self._count -= 1
        try:
            loaded, costs = load_problem(problem, "full"), OperatorCosts()
            with replace_compiler(META), contain_memory(loaded, HOST), costs:
                run_reference(loaded, loaded.make_model(0, META), loaded.make_inputs(0, META))
            estimated_s = costs.elements / ELEMENTS_PER_S + costs.flops / FLOPS_PER_S
        except ReferenceStopped:
            raise
        except ProblemError as error:
            return self._run_instead(problem, str(error), limit_s)
        if estimated_s * CALLS > limit_s:
            return _describe_run(META), _skip_values(f"a call takes about {estimated_s:.2g} s on a CPU")
        return self._run_with_values(problem, META, limit_s)

    def _run_instead(self, problem: Problem, failure: str, limit_s: float) -> tuple[Check, ...]:
        """Use the result on the device, since the meta device lacks values and some operators."""
        checks = self._run_with_values(problem, self._device, limit_s)
        if checks[0].skipped and "meta" not in failure.lower():
            return (Check(name="runs", passed=False, evidence=failure),)
        return checks

    def _run_with_values(self, problem: Problem, ran_on: torch.device, limit_s: float) -> tuple[Check, ...]:
        began_s, ran = time.monotonic(), _describe_run(ran_on)
        try:
            loaded = load_problem(problem, "full", self._device)
            with contain_memory(loaded, self._device):
                call_s = _measure_call_s(loaded, self._device)
                if call_s * CALLS > limit_s:
                    return ran, _skip_values(f"a call takes {call_s:.2g} s on {self._device}")
                return ran, *check_values(loaded, self._device, self._seed)
        except ProblemTooLarge as error:
            return (*([ran] if ran_on is META else []), _skip_values(str(error)))
        except ReferenceStopped:
            raise
        except ProblemError as error:
            return (Check(name="runs", passed=False, evidence=str(error)),)
        finally:
            self._left_s = max(self._left_s - (time.monotonic() - began_s), 0.0)


def _measure_call_s(loaded: LoadedProblem, device: torch.device) -> float:
    """Include the model's and the inputs' construction. Raises ProblemError."""
    began_s = time.monotonic()
    run_reference(loaded, loaded.make_model(0, device), loaded.make_inputs(0, device))
    return time.monotonic() - began_s


def _describe_run(device: torch.device) -> Check:
    return Check(name="runs", passed=True, evidence=f"at its own sizes, on {device}")


def _skip_values(reason: str) -> Check:
    return Check(name="values", passed=True, skipped=True, evidence=f"not checked: {reason}")
