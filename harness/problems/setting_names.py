"""Finds misspelt settings of a problem file, and describes those in force."""

import ast
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from harness.domain import CASES_FUNCTION, PROBLEM_FLAGS, PROBLEM_SETTINGS, Problem, ProblemError, Tolerance
from harness.syntax import list_assigned

NEAR, NEAR_FUNCTION = 0.75, 0.85  # of difflib's ratio
_NOT_RUN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LEAST_SHARED = 4  # characters of a word shared with a setting
# Names in other tools, and what this one has instead. Tolerances count within longer names, too.
_TOLERANCES = dict.fromkeys(("TOL", "TOLS", "ABSTOL", "RELTOL"), "TOLERANCE") | {
    "ATOL": 'TOLERANCE = {"atol": ...}',
    "RTOL": 'TOLERANCE = {"rtol": ...}',
}
_OTHER_NAMES = _TOLERANCES | {
    **dict.fromkeys(("PRECISION", "DTYPE", "DTYPES"), 'CASES, with the key "dtype"'),
    **dict.fromkeys(("SHAPES", "SIZES", "INPUT_SHAPES", "INPUT_SIZES"), "CASES"),
    "SEED": "SEEDED_CALLS",
    "REQUIRES_GRAD": "BACKWARD",
}


def require_known_names(tree: ast.Module, path: Path) -> None:
    """Raises ProblemError for unused names that resemble a setting's, and for settings not at module level."""
    read = set(_list_read(tree))
    for statement in tree.body:
        where = f"{path}, line {statement.lineno}"
        for name in sorted(set(_list_hidden(statement)) & {*PROBLEM_SETTINGS, CASES_FUNCTION}):
            raise ProblemError(f"{where}: {name} is read without running the file: assign a literal at module level")
        for name, meant in _find_misspelt(statement):
            if name not in read:
                raise ProblemError(
                    f"{where}: {name} is no setting, and nothing reads it. Did you mean {meant}? Otherwise remove it"
                )


def _list_read(tree: ast.Module) -> Iterator[str]:
    """Include strings, for `globals()["NAME"]`."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                yield name


def _find_misspelt(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield (name, intended setting)."""
    called = statement.name if isinstance(statement, ast.FunctionDef) else CASES_FUNCTION
    if called != CASES_FUNCTION and get_close_matches(called, [CASES_FUNCTION], cutoff=NEAR_FUNCTION):
        yield called, CASES_FUNCTION
    for name, value in list_assigned(statement):
        if name not in PROBLEM_SETTINGS and (meant := _find_meant(name, value)):
            yield name, meant


def _find_meant(name: str, value: ast.expr) -> str:
    """Return the setting with the same letters, or with a similar name; "" without one. Few settings are numbers."""
    candidates = ["TOLERANCE"] if _is_number(value) else [*PROBLEM_SETTINGS]
    for setting in (*PROBLEM_FLAGS, *candidates):
        if _simplify(setting) == _simplify(name):
            return setting
    if name != name.upper():
        return ""
    near: list[str] = get_close_matches(name, candidates, n=1, cutoff=NEAR)
    return _find_other_name(name.strip("_")) or "".join(near) or _find_shared(name.strip("_"))


def _find_other_name(name: str) -> str:
    words = (name, *(word for word in name.split("_") if word in _TOLERANCES))
    return next((_OTHER_NAMES[word] for word in words if word in _OTHER_NAMES), "")


def _find_shared(name: str) -> str:
    """Return a setting whose words are a subsequence of those of `name`, or the reverse."""
    for setting in PROBLEM_SETTINGS:
        shorter, longer = sorted((name, setting), key=len)
        if len(shorter) >= _LEAST_SHARED and f"_{shorter}_" in f"_{longer}_":
            return setting
    return ""


def _simplify(name: str) -> str:
    return name.upper().replace("_", "").removesuffix("S")


def _is_number(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Constant) and isinstance(value.value, int | float) and not isinstance(value.value, bool)
    )


def _list_hidden(statement: ast.stmt) -> Iterator[str]:
    """Yield names that are imported, changed, or bound inside a statement such as `if`."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in statement.names)
    if isinstance(statement, (*_NOT_RUN, ast.Assign, ast.AnnAssign)) or _is_main(statement):
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            yield node.name
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if not isinstance(node, _NOT_RUN):
            waiting += ast.iter_child_nodes(node)


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test)
    )


def describe_settings(problem: Problem) -> dict[str, str]:
    """Omit defaults; values are written as in a file."""
    found = {name: "True" for name in PROBLEM_FLAGS if getattr(problem, name.lower())}
    small = problem.workload("small")
    if small is not None:
        found["SMALL"] = ", ".join(f"{name}={value}" for name, value in small.overrides)
    if problem.tolerance != Tolerance():
        found["TOLERANCE"] = describe_tolerance(problem.tolerance)
    if problem.distributions != ("as_given",) or problem.only_as_given:
        found["DISTRIBUTIONS"] = ", ".join(problem.distributions)
    if problem.cases:
        found["CASES"] = ", ".join(case.name for case in problem.cases)
    if problem.tags:
        found["TAGS"] = ", ".join(problem.tags)
    return found


def describe_tolerance(stated: Tolerance) -> str:
    values = {name: getattr(stated, name) for name in ("factor", "atol", "rtol", "matched")}
    return ", ".join(f"{name}={value}" for name, value in values.items() if value != getattr(Tolerance(), name))
