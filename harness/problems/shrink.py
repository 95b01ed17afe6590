"""Shrinks a problem's sizes to a budget, as the workload `reduced`, for the emulated device.

Integers of the module are halved, largest first, preferably to odd numbers, which expose errors at tile edges.
"""

from __future__ import annotations

import ast
import math
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from harness.domain import Problem, ProblemError, ReferenceStopped, SizeValue, Workload, WorkloadName
from harness.problems.discovery import parse_source
from harness.problems.loading import LoadedProblem, load_problem
from harness.problems.operator_costs import OperatorCosts
from harness.problems.operators import replace_compiler
from harness.problems.watched_process import limit_reference
from harness.syntax import list_assigned

REDUCED: WorkloadName = "reduced"
LEAST_SIZE = 2
MAX_STEPS = 64
MAX_SECONDS = 20.0  # of this thread
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}  # fmt: skip
MOST_RIGHT: dict[type[ast.operator], int] = {ast.Pow: 64, ast.LShift: 64}  # larger operands are not sizes
ROWS_OF = ("randn", "rand", "ones", "zeros")
CAPS = (4096, 1024, 256, 64, 32, 16, 8, 4)  # tried if the reference does not run on the meta device
ALWAYS_TRIED = 64  # larger ones only while the product of all sizes fits the budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits per call: elements of all intermediate results, floating-point operations of products and convolutions."""

    elements: int
    flops: int

    def divided_by(self, cost: int) -> Budget:
        return Budget(elements=self.elements // cost, flops=self.flops // cost)


# Emulated on two cores, a call takes seconds at most, even with naive kernels; about ten seconds for the second.
EMULATED_BUDGET = Budget(elements=2_000_000, flops=100_000_000)
PATIENT_BUDGET = Budget(elements=100_000_000, flops=4_000_000_000)


@dataclass(frozen=True, slots=True)
class _Cost:
    elements: int
    flops: int

    def share_of(self, budget: Budget) -> float:
        return max(self.elements / budget.elements, self.flops / budget.flops)


def reduce_problem(problem: Problem, budget: Budget, *, start: Workload | None = None) -> Problem | None:
    """Shrink `start` or the full sizes to a `reduced` workload within `budget`; None if the problem accepts none."""
    sizes = list_sizes(problem, start)
    fixed = {name: value for name, value in (start.overrides if start else ()) if name not in sizes}
    for way in _list_ways(problem, sizes, fixed, budget):
        cut = _with_sizes(problem, fixed | way)
        if _runs(cut, budget):
            return cut
    return None


def fit_problem(problem: Problem, cost: int) -> Problem | None:
    """Make a `reduced` workload for the emulated device.

    `cost` is an element's cost relative to CUDA kernels. Without sizes to shrink, the problem is used as written if
    that takes only seconds.
    """
    cut = reduce_problem(problem, EMULATED_BUDGET.divided_by(cost))
    return cut or keep_sizes(problem, PATIENT_BUDGET.divided_by(cost))


def has_own_sizes(problem: Problem, workload: WorkloadName) -> bool:
    found = problem.workload(workload)
    return found is None or {**list_sizes(problem), **dict(found.overrides)} == list_sizes(problem)


def keep_sizes(problem: Problem, budget: Budget) -> Problem | None:
    """Use the full sizes as `reduced`; return None if they exceed the budget or the cost cannot be counted."""
    whole = _with_sizes(problem, list_sizes(problem))
    return whole if _fits(whole, budget) else None


def list_milder_sizes(problem: Problem, budget: Budget, patient: Budget) -> Iterator[Problem]:
    """Yield milder reductions for candidates that are specialised for a problem's sizes: the model's sizes kept; all
    halved without odd ones; the last dimension of inputs kept; full sizes if within `patient`.
    """
    tried: list[dict[str, Any] | None] = [
        {**list_sizes(problem), **dict(workload.overrides)}
        for workload in problem.workloads if workload.name == REDUCED
    ]  # fmt: skip
    for way in _list_milder_ways(problem, budget):
        if way is None or way in tried:
            continue
        tried.append(way)
        cut = _with_sizes(problem, way)
        if _fits(cut, patient) and _runs(cut, patient):
            yield cut


def _list_milder_ways(problem: Problem, budget: Budget) -> Iterator[dict[str, int] | None]:
    sizes = list_sizes(problem)
    yield _halve_others(problem, sizes, _list_names_of_model(problem), budget)
    yield _halve_until(problem, sizes, {}, budget, odd=False)
    yield _halve_others(problem, sizes, _list_names_of_rows(problem), budget)
    yield sizes


def _halve_others(problem: Problem, sizes: dict[str, int], names: set[str], budget: Budget) -> dict[str, int] | None:
    """Halve all sizes but the named ones; return None if there are none, or the cost never fits."""
    kept = {name: value for name, value in sizes.items() if name in names}
    others = {name: value for name, value in sizes.items() if name not in names}
    halved = _halve_until(problem, others, dict(kept), budget, odd=False) if kept else None
    return None if halved is None else kept | halved


def _list_names_of_model(problem: Problem) -> set[str]:
    """List names used in `get_init_inputs`, and module-level names that they are computed from."""
    body = parse_source(problem.source, problem.name).body
    values = {name: node for statement in body for name, node in list_assigned(statement)}
    found: set[str] = set()
    ahead: list[ast.AST] = [one for one in body if isinstance(one, ast.FunctionDef) and one.name == "get_init_inputs"]
    while ahead:
        names = {node.id for node in ast.walk(ahead.pop()) if isinstance(node, ast.Name)} - found
        found |= names
        ahead += [values[name] for name in names if name in values]
    return found


def _list_names_of_rows(problem: Problem) -> set[str]:
    """List names of the last dimension of floating-point draws in `get_inputs`."""
    body = parse_source(problem.source, problem.name).body
    functions = [one for one in body if isinstance(one, ast.FunctionDef) and one.name == "get_inputs"]
    found: set[str] = set()
    for node in (node for function in functions for node in ast.walk(function)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ROWS_OF
            and node.args
        ):
            shape = node.args[0].elts if isinstance(node.args[0], ast.Tuple | ast.List) else node.args
            found |= {one.id for one in shape[-1:] if isinstance(one, ast.Name)}
    return found


def _list_ways(
    problem: Problem, sizes: dict[str, int], fixed: dict[str, SizeValue], budget: Budget
) -> Iterator[dict[str, int]]:
    if _measure(_with_sizes(problem, fixed | sizes)) is None:
        for cap in CAPS:
            capped = {name: min(value, cap) for name, value in sizes.items()}
            if cap <= ALWAYS_TRIED or math.prod(capped.values()) <= budget.elements:
                yield capped
        return
    for odd in (True, False):
        way = _halve_until(problem, sizes, fixed, budget, odd=odd)
        if way is not None:
            yield way


def list_sizes(problem: Problem, start: Workload | None = None) -> dict[str, int]:
    """Shrinkable sizes are module-level numbers or constant expressions. Values are those in `start`."""
    sizes: dict[str, int] = {}
    for statement in parse_source(problem.source, problem.name).body:
        for name, node in list_assigned(statement):
            value = _read_integer(node)
            if value is not None and value >= LEAST_SIZE:
                sizes[name] = value
    given = {name: value for name, value in (start.overrides if start else ()) if type(value) is int}
    return sizes | {name: value for name, value in given.items() if value >= LEAST_SIZE}


def _read_integer(node: ast.expr) -> int | None:
    """Accept `1024`, `2 * 1024` or `1 << 20`; return None for other expressions."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS:
        return None
    left, right = _read_integer(node.left), _read_integer(node.right)
    if left is None or right is None or not 0 <= right <= MOST_RIGHT.get(type(node.op), right):
        return None
    return _OPERATORS[type(node.op)](left, right)


def describe_sizes(problem: Problem, workload: str) -> str:
    """Return a text such as `batch_size=3, features=511`; "" for the full workload."""
    overrides = next((one.overrides for one in problem.workloads if one.name == workload), ())
    return ", ".join(f"{name}={value}" for name, value in overrides)


def _halve_until(
    problem: Problem, sizes: dict[str, int], fixed: dict[str, SizeValue], budget: Budget, *, odd: bool
) -> dict[str, int] | None:
    """Return None if the cost never fits."""
    deadline_s = time.thread_time() + MAX_SECONDS
    now, cost = dict(sizes), _measure(_with_sizes(problem, fixed | sizes))
    for _ in range(MAX_STEPS):
        if cost is None or time.thread_time() > deadline_s:
            return None
        if cost.share_of(budget) <= 1.0:
            return now
        for smaller in _list_smaller(now, odd=odd):
            found = _measure(_with_sizes(problem, fixed | smaller))
            if found is not None and found.share_of(budget) < cost.share_of(budget):
                now, cost = smaller, found
                break
        else:
            return None
    return None


def _list_smaller(sizes: dict[str, int], *, odd: bool) -> Iterator[dict[str, int]]:
    for name, value in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        half = value // 2
        for smaller in dict.fromkeys(((half - 1) | 1 if odd else half, half)):
            if LEAST_SIZE <= smaller < value:
                yield {**sizes, name: smaller}


def _with_sizes(problem: Problem, sizes: dict[str, Any]) -> Problem:
    overrides = tuple(sorted(sizes.items()))
    kept = tuple(workload for workload in problem.workloads if workload.name != REDUCED)
    return replace(problem, workloads=(*kept, Workload(name=REDUCED, overrides=overrides)))


@lru_cache(maxsize=2 * MAX_STEPS)
def _measure(problem: Problem) -> _Cost | None:
    return _call(problem, torch.device("meta"))


def _fits(problem: Problem, budget: Budget) -> bool:
    cost = _measure(problem)
    return cost is not None and cost.share_of(budget) <= 1.0


def _runs(problem: Problem, budget: Budget) -> bool:
    cost = _call(problem, torch.device("cpu"))
    return cost is not None and cost.share_of(budget) <= 2.0


def _call(problem: Problem, device: torch.device) -> _Cost | None:
    costs, name = OperatorCosts(), f"{problem.suite}/{problem.name}.py"
    try:
        loaded: LoadedProblem = load_problem(problem, REDUCED)
        model = loaded.make_model(0, device)
        inputs = loaded.make_inputs(0, device)
        with replace_compiler(device), torch.no_grad(), costs, limit_reference(name, "forward"):
            model(*inputs)
    except ReferenceStopped:
        raise
    except ProblemError:
        return None
    stored = sum(tensor.numel() for tensor in (*model.state_dict().values(), *inputs) if torch.is_tensor(tensor))
    return _Cost(elements=costs.elements + stored, flops=costs.flops)
