"""Finds data folders (reference_models/, prompts/, recordings/) and problems in them or in a stored run."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.domain import Problem, RunManifest, StoreError, Subject, UsageError
from harness.domain.errors import suggest
from harness.problems.discovery import find_problem, list_files, read_problem
from harness.shipped import find_shipped
from harness.store.runs import list_runs, locate_reference, read_manifest

LOG = logging.getLogger(__name__)
SUITES = "reference_models"


def find_folder(name: str, given: Path | None, *, option: str = "") -> Path:
    """Use `given`, else `name` in the working folder, else the shipped one. Raises UsageError about `option`."""
    if given is not None:
        return _require_folder(given, option)
    candidates = (Path.cwd() / name, find_shipped(name))
    found = next((folder for folder in candidates if folder.is_dir()), None)
    if found is None:
        hint = f": name it with {option}" if option else ""
        raise UsageError(f"no folder {name}/ in {candidates[0].parent} nor in {candidates[1].parent}{hint}")
    return found


def list_suite_roots(problems_dir: Path | None) -> tuple[Path, ...]:
    """The user's folder precedes the shipped one. Raises UsageError."""
    own = Path(SUITES) if problems_dir is None else _require_folder(problems_dir, "--problems-dir")
    shipped = find_shipped(SUITES)
    same = own.resolve() == shipped.resolve()
    return tuple(root for root in ((own,) if same else (own, shipped)) if root.is_dir())


def list_suite_names(roots: Iterable[Path]) -> list[str]:
    return sorted({path.name for root in roots for path in root.iterdir() if path.is_dir()})


def find_suite_folder(suite: str, problems_dir: Path | None) -> Path:
    """`suite` is a name, or a path with `/`. Logs a warning if it shadows a shipped one. Raises UsageError."""
    if "/" in suite and Path(suite).is_dir():
        return Path(suite)
    roots = list_suite_roots(problems_dir)
    found = [root / suite for root in roots if (root / suite).is_dir()]
    if not found:
        raise UsageError(_describe_unknown(suite, roots))
    if len(found) > 1:
        _note_precedence(suite, found[0])
    return found[0]


def find_named_problem(problem: str, suite: str, problems_dir: Path | None) -> Problem:
    """`problem` is a name in `suite`, SUITE/NAME, or a file's path. Raises UsageError and ProblemError."""
    other, _, name = problem.rpartition("/")
    if other and not name.endswith(".py") and not Path(problem).is_file():
        suite, problem = other, name
    return find_problem(problem, find_suite_folder(suite, problems_dir), list_suite_roots(problems_dir))


@cache
def _note_precedence(suite: str, folder: Path) -> None:
    LOG.warning("suite %s: %s is used instead of the shipped suite of that name", suite, folder)


def _require_folder(given: Path, option: str) -> Path:
    if given.is_dir():
        return given
    raise UsageError(f"no folder {given}{f', given with {option}' if option else ''}")


def _describe_unknown(suite: str, roots: tuple[Path, ...]) -> str:
    known = list_suite_names(roots)
    return f"no suite {suite!r} in {' nor in '.join(map(str, roots)) or 'any folder'}; {suggest(suite, known, most=3)}"


def find_run_problem(run_dir: Path, manifest: RunManifest, name: str, problems_dir: Path | None) -> Problem:
    """Raises UsageError, or StoreError for a changed file."""
    file = manifest.find_file(name)
    if file is None:
        return _take_dtype(find_problem(name, find_suite_folder(manifest.suite, problems_dir)), manifest)
    path = locate_reference(run_dir, name)
    problem = read_problem(path, manifest.suite)
    if problem.digest != file.digest:
        raise StoreError(
            f"{path} has digest {problem.digest}, expected {file.digest}: it was changed after the run was made. "
            "Restore it, or generate another run"
        )
    return _take_dtype(replace(problem, requires_kernel=file.requires_kernel), manifest)


def _take_dtype(problem: Problem, manifest: RunManifest) -> Problem:
    return problem.in_precision(manifest.dtype) if manifest.dtype else problem


def find_evaluated_problem(subject: Subject, generated_dir: Path, problems_dir: Path | None) -> Problem:
    if subject.run in list_runs(generated_dir):
        run_dir = generated_dir / subject.run
        manifest = read_manifest(run_dir)
        if manifest.find_file(subject.problem):
            return find_run_problem(run_dir, manifest, subject.problem, problems_dir)
    return find_problem(subject.problem, find_suite_folder(subject.suite, problems_dir))


def list_run_problems(manifest: RunManifest, problems_dir: Path | None) -> tuple[str, ...]:
    files = [file.name for file in manifest.files]
    if set(manifest.problems) <= set(files):
        return tuple(files)
    suite = list_files(find_suite_folder(manifest.suite, problems_dir))
    return (*files, *(path.stem for path in suite if path.stem not in files))
