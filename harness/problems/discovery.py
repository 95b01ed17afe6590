"""Finds problem files and reads their module-level literals without executing them or importing torch.

docs/problems.md lists the settings.
"""

import ast
import tomllib
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from harness.domain import (
    LIBRARY_CLASS,
    PROBLEM_FLAGS,
    PROBLEM_SETTINGS,
    Problem,
    ProblemError,
    Tolerance,
    UsageError,
    Workload,
)
from harness.domain.errors import suggest
from harness.domain.files import BYTE_ORDER_MARK, raising, read_python
from harness.problems.cases import read_cases, read_numbers
from harness.problems.contracts import read_contracts
from harness.problems.setting_names import require_known_names
from harness.syntax import explain_syntax_error, parse_python

DISTRIBUTION_NAMES = (
    "as_given",
    "normal",
    "uniform",
    "large",
    "tiny",
    "scale_3",
    "scale_0.01",
    "scale_-1",
    "scale_1e6",
    "scale_1e-12",
    "zeros",
    "ties",
    "alternating",
    "integers",
    "padded",
)
REQUIRED_NAMES = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSettings:
    """The keys of a suite's `suite.toml`."""

    requires_kernel: bool = False
    summary: str = ""


def find_suite(suite_dir: Path) -> tuple[Problem, ...]:
    return tuple(read_problem(path, suite_dir.name) for path in list_files(suite_dir))


def list_files(suite_dir: Path) -> tuple[Path, ...]:
    """Return sorted files, without names that begin with `_`. Raises UsageError if there are none."""
    if not suite_dir.is_dir():
        siblings = [path.name for path in suite_dir.parent.glob("*") if path.is_dir()]
        hint = suggest(suite_dir.name, siblings)
        raise UsageError(f"no suite {suite_dir.name!r}: there is no folder {suite_dir}; {hint}")
    paths = sorted(path for path in suite_dir.glob("*.py") if not path.name.startswith("_"))
    if not paths:
        raise UsageError(f"no problems in {suite_dir}: expected *.py files with {', '.join(REQUIRED_NAMES)}")
    return tuple(paths)


def find_problem(name_or_path: str, suite_dir: Path, roots: tuple[Path, ...] = ()) -> Problem:
    """`roots` are folders of other suites, for hints. Raises UsageError and ProblemError."""
    named = suite_dir / f"{name_or_path}.py"
    if _looks_like_a_name(name_or_path) and named.is_file():
        return read_problem(named, suite_dir.name)
    path = Path(name_or_path)
    if path.is_file():
        return read_problem(path, path.resolve().parent.name)
    if not _looks_like_a_name(name_or_path):
        raise UsageError(f"no reference file at {path}: pass the path of a Python file or a problem's name")
    raise UsageError(_describe_unknown(name_or_path, suite_dir, roots or (suite_dir.parent,)))


def read_problem(path: Path, suite: str, *, executes: bool = True) -> Problem:
    """Raises ProblemError."""
    problem = parse_problem(_read_source(path), path, suite, executes=executes)
    return replace(
        problem,
        requires_kernel=read_suite_settings(path.parent).requires_kernel,
        path=str(path.parent.resolve() / path.name),
    )


def parse_problem(source: str, path: Path, suite: str, *, executes: bool = True) -> Problem:
    """`path` gives the name. Without `executes` no code runs: cases of `get_cases` lack. Raises ProblemError."""
    source = source.removeprefix(BYTE_ORDER_MARK)
    tree = parse_source(source, str(path))
    settings = _read_settings(tree, path)
    _require_names(tree, path)
    require_known_names(tree, path)
    small = _read_small(settings, tree, path)
    cases = read_cases(
        tree,
        settings,
        path,
        sizes=list_assigned_names(tree) - set(PROBLEM_SETTINGS),
        distributions=DISTRIBUTION_NAMES,
        read_size=_read_size,
        executes=executes,
    )
    try:
        return Problem(
            name=path.stem,
            suite=suite,
            source=source,
            workloads=(Workload(name="full"), *small),
            cases=cases,
            tolerance=_read_tolerance(settings, path),
            tags=_read_words(settings, "TAGS", path),
            distributions=_read_distributions(settings, path),
            inputs=read_contracts(settings.get("INPUTS", {}), path),
            only_as_given=tuple(settings.get("DISTRIBUTIONS", ())) == ("as_given",),
            summary=_first_line(read_docstrings(tree)),
            requires_kernel=False,
            dtype="",
            draws="",
            precision="",
            path="",
            **{name.lower(): _read_flag(settings, name, path) for name in PROBLEM_FLAGS},
        )
    except ValueError as error:
        raise ProblemError(f"{path}: {error}") from error


def parse_source(source: str, where: str) -> ast.Module:
    """Raises ProblemError."""
    try:
        return parse_python(source, filename=where)
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{explain_syntax_error(error, where)}; correct the file") from error


def bound_names(statement: ast.stmt) -> frozenset[str]:
    """Handles `a = b = 1`, `a, b = 1, 2` and `a: int = 1`."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return frozenset()
    nodes = (node for target in targets for node in ast.walk(target))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def list_assigned_names(tree: ast.Module) -> frozenset[str]:
    return frozenset(name for statement in tree.body for name in bound_names(statement))


def defined_names(statement: ast.stmt) -> frozenset[str]:
    """Return what a definition, an import or an assignment binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return frozenset([statement.name])
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return frozenset((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
    return bound_names(statement)


def is_library(statement: ast.stmt) -> bool:
    """Return whether it defines the problem's best library call."""
    if not isinstance(statement, ast.ClassDef) or statement.name != LIBRARY_CLASS:
        return False
    return any(isinstance(base, ast.Name) and base.id == REQUIRED_NAMES[0] for base in statement.bases)


def _looks_like_a_name(name_or_path: str) -> bool:
    return "/" not in name_or_path and not name_or_path.endswith(".py")


def _describe_unknown(name: str, suite_dir: Path, roots: tuple[Path, ...]) -> str:
    others = {path.stem: f"{path.parent.name}/{path.stem}" for root in roots for path in sorted(root.glob("*/*.py"))}
    if name in others:
        return f"no problem {name!r} in suite {suite_dir.name!r}; there is {others[name]}"
    names = [path.stem for path in list_files(suite_dir)]
    elsewhere = " or ".join(others[near] for near in get_close_matches(name, others))
    near = suggest(name, names, f"did you mean {elsewhere}?" if elsewhere else f"{suggest(name, names)}.", most=3)
    hint = f"{near} `harness problems find WORD` searches all suites"
    return f"no problem {name!r} in suite {suite_dir.name!r} ({suite_dir}); {hint}"


def _read_source(path: Path) -> str:
    with raising(ProblemError, f"read {path} as Python text", also=(ValueError,)):
        return read_python(path)


def _require_names(tree: ast.Module, path: Path) -> None:
    defined = {name for statement in tree.body for name in defined_names(statement)}
    missing = [name for name in REQUIRED_NAMES if name not in defined]
    if missing:
        raise ProblemError(
            f"{path}: expected {', '.join(REQUIRED_NAMES)} at module level, found no {', '.join(missing)}; "
            "define the missing names"
        )


def _read_settings(tree: ast.Module, path: Path) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for statement in tree.body:
        names = bound_names(statement).intersection(PROBLEM_SETTINGS)
        if names:
            settings.update(dict.fromkeys(names, _read_literal(statement, sorted(names)[0], path)))
    return settings


def _read_literal(statement: ast.stmt, name: str, path: Path) -> Any:
    value = getattr(statement, "value", None) or ast.Name("nothing")
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError) as error:
        raise ProblemError(
            f"{path}, line {statement.lineno}: {name} must be a literal (the file is not executed to read it), "
            f"found {ast.unparse(value)}; use literal values"
        ) from error


def _read_small(settings: dict[str, Any], tree: ast.Module, path: Path) -> tuple[Workload, ...]:
    if "SMALL" not in settings:
        return ()
    small = settings["SMALL"]
    if not isinstance(small, dict) or not small:
        raise ProblemError(f"{path}: SMALL must be a dict of sizes such as {{'batch_size': 4}}, found {small!r}")
    sizes = list_assigned_names(tree)
    unknown = sorted(str(name) for name in small if name not in sizes)
    if unknown:
        raise ProblemError(
            f"{path}: SMALL names {', '.join(unknown)}, which the file does not assign at module level; "
            f"{suggest(unknown[0], sorted(sizes))}"
        )
    overrides = tuple((name, _read_size(name, value, f"{path}: SMALL")) for name, value in small.items())
    return (Workload(name="small", overrides=overrides),)


def _read_size(name: str, value: Any, where: str) -> int | float | bool | str | tuple[int, ...]:
    if isinstance(value, int | float | bool | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, int) for item in value):
        return tuple(value)
    raise ProblemError(f"{where}[{name!r}] must be a number, a string or a tuple of integers, found {value!r}")


def _read_tolerance(settings: dict[str, Any], path: Path) -> Tolerance:
    given = settings.get("TOLERANCE", {})
    try:
        return read_numbers(Tolerance, given)
    except ValueError as error:
        raise ProblemError(
            f"{path}: TOLERANCE must be a dict with factor (at least 1), atol, rtol, matched, found {given!r}: {error}"
        ) from error


def _read_distributions(settings: dict[str, Any], path: Path) -> tuple[str, ...]:
    names = _read_words(settings, "DISTRIBUTIONS", path) or ("as_given",)
    unknown = [name for name in names if name not in DISTRIBUTION_NAMES]
    if unknown:
        raise ProblemError(
            f"{path}: DISTRIBUTIONS names {', '.join(unknown)}; choose among {', '.join(DISTRIBUTION_NAMES)}"
        )
    return names


def _read_words(settings: dict[str, Any], name: str, path: Path) -> tuple[str, ...]:
    words = settings.get(name, ())
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ProblemError(f"{path}: {name} must be a tuple of strings, found {words!r}")
    return tuple(words)


def _read_flag(settings: dict[str, Any], name: str, path: Path) -> bool:
    flag = settings.get(name, False)
    if not isinstance(flag, bool):
        raise ProblemError(f"{path}: {name} must be True or False, found {flag!r}")
    return flag


def read_suite_settings(folder: Path) -> SuiteSettings:
    """Raises ProblemError."""
    path = folder / "suite.toml"
    if not path.is_file():
        return SuiteSettings()
    with raising(ProblemError, f"read {path}", also=(UnicodeDecodeError, tomllib.TOMLDecodeError)):
        settings = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    required, summary = settings.pop("requires_kernel", False), settings.pop("summary", "")
    if settings or not isinstance(required, bool) or not isinstance(summary, str):
        raise ProblemError(
            f"{path}: expected only requires_kernel = true or false, and summary = a string; found "
            f"{sorted(settings)}, {required!r}, {summary!r}"
        )
    return SuiteSettings(requires_kernel=required, summary=_first_line(summary))


def read_docstrings(tree: ast.Module) -> str:
    """Return those of the module and of its classes."""
    classes = (statement for statement in tree.body if isinstance(statement, ast.ClassDef))
    documented: list[ast.Module | ast.ClassDef] = [tree, *classes]
    return "\n".join(ast.get_docstring(node) or "" for node in documented)


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
