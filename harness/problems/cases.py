"""Reads the cases of a problem file (docs/problems.md): `CASES`, `RANGES`, or the function `get_cases`."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from harness.domain import CASES_FUNCTION, Case, CaseSizes, ProblemError, SizeRange, SizeValue, Tolerance
from harness.domain.errors import explain_unknown
from harness.problems.watched_process import limit_reference, run_apart

DTYPES = ("float16", "bfloat16", "float32", "float64")
SECRET = "secret"  # the case of RANGES
MAX_CASES = 64
_KEYS = ("name", "sizes", "small", "dtype", "distribution", "tolerance", "weight", "timed")
_BUILTINS = {"range": range, "len": len, "min": min, "max": max, "sum": sum, "zip": zip, "enumerate": enumerate}
_COMPUTED = (ast.Call, ast.Attribute, ast.Lambda, ast.Await, ast.Yield, ast.NamedExpr)

Numbers = TypeVar("Numbers")
ReadSize = Callable[[str, Any, str], SizeValue]  # from name, value and place


def read_cases(
    tree: ast.Module,
    settings: Mapping[str, Any],
    path: Path,
    *,
    sizes: frozenset[str],
    distributions: tuple[str, ...],
    read_size: ReadSize,
    executes: bool,
) -> tuple[Case, ...]:
    """`sizes` are the file's module-level names. `executes` permits `get_cases`. Raises ProblemError."""
    given = settings.get("CASES", _call_function(tree, path) if executes else ())
    if not isinstance(given, list | tuple) or len(given) > MAX_CASES:
        raise ProblemError(f"{path}: cases must be a list of at most {MAX_CASES} mappings, found {str(given)[:200]}")
    reader = _CaseReader(path, sizes, distributions, read_size)
    cases = [reader.read(index, one) for index, one in enumerate(given)]
    ranges = settings.get("RANGES", {})
    if ranges:
        if not isinstance(ranges, dict):
            raise ProblemError(f"{path}: RANGES must be a dict such as {{'rows': (1000, 9000)}}, found {ranges!r}")
        drawn = {name: _spell_range(name, value, path) for name, value in ranges.items()}
        cases = [*(cases or [Case(name="given")]), reader.read(len(cases), {"name": SECRET, "sizes": drawn})]
    return tuple(cases)


def _spell_range(name: str, value: Any, path: Path) -> dict[str, Any]:
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return dict(zip(("low", "high", "step"), value, strict=False))
    raise ProblemError(f"{path}: RANGES[{name!r}] must be (low, high) or (low, high, step), found {value!r}")


def _call_function(tree: ast.Module, path: Path) -> Any:
    """The function sees only the module's plain values; the rest of the file needs torch."""
    function = next((one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == CASES_FUNCTION), None)
    if function is None:
        return ()
    return run_apart(_execute_function, [*filter(_is_plain, tree.body), function], path)


def _execute_function(statements: list[ast.stmt], path: Path) -> Any:
    names: dict[str, Any] = {"__builtins__": _BUILTINS}
    advice = f"; it sees plain values of the module and {', '.join(_BUILTINS)}"
    with limit_reference(str(path), f"{CASES_FUNCTION}()", advice):
        for statement in statements:
            try:
                exec(compile(ast.Module([statement], []), str(path), "exec"), names)
            except NameError:
                continue  # computed from what is not a plain value
        return names[CASES_FUNCTION]()


def _is_plain(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    return not any(isinstance(node, _COMPUTED) for node in ast.walk(statement.value))


class _CaseReader:
    def __init__(self, path: Path, sizes: frozenset[str], distributions: tuple[str, ...], read_size: ReadSize) -> None:
        self._path = path
        self._sizes = sizes
        self._distributions = distributions
        self._read_size = read_size

    def read(self, index: int, given: Any) -> Case:
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            raise ProblemError(f"{self._path}: case {index} must be a mapping with a name, found {str(given)[:200]}")
        where = f"{self._path}: case {given['name']!r}"
        unknown = [str(key) for key in given if key not in _KEYS]
        if unknown:
            raise ProblemError(f"{where} has unknown keys {', '.join(unknown)}; choose among {', '.join(_KEYS)}")
        try:
            return Case(
                name=given["name"],
                sizes=self._read_sizes(given.get("sizes", {}), where),
                small=self._read_sizes(given.get("small", {}), where),
                dtype=_choose(given.get("dtype", ""), DTYPES),
                distribution=_choose(given.get("distribution", ""), self._distributions),
                tolerance=read_numbers(Tolerance, given["tolerance"]) if "tolerance" in given else None,
                weight=_require(given.get("weight", 1.0), int | float),
                timed=_require(given.get("timed", True), bool),
            )
        except (TypeError, ValueError) as error:
            raise ProblemError(f"{where}: {error}") from error

    def _read_sizes(self, given: Any, where: str) -> CaseSizes:
        if not isinstance(given, dict):
            raise TypeError(f"sizes must be a mapping such as {{'rows': 4096}}, found {given!r}")
        unknown = sorted(str(name) for name in given if name not in self._sizes)
        if unknown:
            raise ValueError(f"the file does not assign {', '.join(unknown)} at module level")
        return tuple((name, self._read_value(name, value, where)) for name, value in given.items())

    def _read_value(self, name: str, value: Any, where: str) -> SizeValue | SizeRange:
        return read_numbers(SizeRange, value) if isinstance(value, dict) else self._read_size(name, value, where)


def _choose(value: Any, known: tuple[str, ...]) -> str:
    if value not in ("", *known):
        raise ValueError(f"{value!r} is unknown; choose among {', '.join(known)}")
    return str(value)


def _require(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {getattr(kind, '__name__', kind)}, found {value!r}")
    return value


def read_numbers(kind: type[Numbers], given: Any) -> Numbers:
    """Raises ValueError."""
    members = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    names = ", ".join(members)
    if not isinstance(given, dict):
        raise ValueError(f"expected a dict with {names}, found {given!r}")
    for name, value in given.items():
        if name not in members:
            raise ValueError(explain_unknown("key", name, members))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not (value is None and members[name].default is None):
            raise ValueError(f"{name} must be a number, found {value!r}")
    missing = [name for name, one in members.items() if one.default is MISSING and name not in given]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing in {given!r}")
    return kind(**given)
