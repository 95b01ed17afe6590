"""Describes suites and problems to people, with baseline times from stored results; lists and removes runs."""

import ast
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from harness.domain import (
    FILE_RUN,
    LIBRARY_CLASS,
    PROBLEM_FLAGS,
    Case,
    Clock,
    Evaluation,
    Outcome,
    Problem,
    ProblemError,
    RunManifest,
    StoreError,
    Tolerance,
    UsageError,
    WorkloadName,
)
from harness.domain.errors import suggest
from harness.domain.files import raising
from harness.pipeline.data_folders import list_suite_roots
from harness.problems.discovery import is_library, list_files, read_docstrings, read_problem, read_suite_settings
from harness.problems.setting_names import describe_settings, describe_tolerance
from harness.problems.watched_process import describe_inputs
from harness.report.export.table_files import write_csvs
from harness.store.columns import ResultRow
from harness.store.results import ResultFilter, ResultStore
from harness.store.run_files import RunNotes, read_notes
from harness.store.runs import hold_run, list_keys, list_runs, locate_run, read_manifest
from harness.syntax import parse_python

Inputs = tuple[tuple[str, tuple[int, ...]], ...]  # dtype and shape of each; () if unknown before execution
_LISTED_ELSEWHERE = ("CASES", "TAGS", "SMALL")
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEntry:
    """`hidden_by` is the folder that is used instead, or ""."""

    name: str
    problems: int
    folder: str
    summary: str
    hidden_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundProblem:
    name: str  # SUITE/NAME
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEntry:
    """`inputs` of a secret case are unknown: its sizes are drawn for each evaluation. `error`: the file fails."""

    workload: WorkloadName
    case: str
    sizes: str
    inputs: Inputs
    error: str = ""
    is_secret: bool = False
    tolerance: str = ""
    timed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTime:
    evaluation: int
    workload: WorkloadName
    case: str
    dtype: str  # of --dtype
    baseline: str
    time_us: float
    clock: Clock
    hardware: str


def list_suites(problems_dir: Path | None) -> list[SuiteEntry]:
    """Raises UsageError."""
    used: dict[str, str] = {}
    entries = []
    for root in list_suite_roots(problems_dir):
        # Omit folders without problems
        for folder in sorted({path.parent for path in root.glob("*/*.py") if not path.name.startswith("_")}):
            entries.append(
                SuiteEntry(
                    name=folder.name,
                    problems=len(list_files(folder)),
                    folder=str(folder),
                    summary=_summarise(folder),
                    hidden_by=used.get(folder.name, ""),
                )
            )
            used.setdefault(folder.name, str(folder))
    return entries


def search_problems(words: list[str], problems_dir: Path | None) -> list[FoundProblem]:
    """Return problems whose name, tags or docstrings contain all words, those by name first. Raises UsageError."""
    wanted = [_simplify(word) for word in words]
    by_name, others = [], []
    for name, problem in _read_all(problems_dir):
        entry = FoundProblem(name=name, summary=_summarise_problem(problem))
        if all(_is_in_name(word, name) for word in wanted):
            by_name.append(entry)
        elif all(_is_in_name(word, name) or word in _collect_text(problem) for word in wanted):
            others.append(entry)
    return by_name + others


def suggest_words(words: list[str], problems_dir: Path | None) -> str:
    """Return a hint with words that occur in names and docstrings, for words that do not."""
    texts = [_simplify(name) + " " + _collect_text(problem) for name, problem in _read_all(problems_dir)]
    known = sorted(set(_WORD.findall(" ".join(texts))))
    missing = [word for word in words if not any(_simplify(word) in text for text in texts)]
    return suggest(missing[0].lower(), known, "", most=3) if missing else ""


def describe_settings_in_force(problem: Problem) -> dict[str, str]:
    """Includes defaults of settings that always apply."""
    always = {"TOLERANCE": f"factor={Tolerance().factor} (default)", "DISTRIBUTIONS": "as_given (default)"}
    stated = {name: value for name, value in describe_settings(problem).items() if name not in _LISTED_ELSEWHERE}
    if problem.requires_kernel:
        stated["requires_kernel"] = "true (suite.toml)"
    library = next(filter(is_library, parse_python(problem.source).body), None)
    if isinstance(library, ast.ClassDef):
        stated[LIBRARY_CLASS] = f"{ast.get_docstring(library) or 'defined'} (--baseline library)"
    return always | stated


def list_unset_flags(problem: Problem) -> list[str]:
    return [name for name in PROBLEM_FLAGS if not getattr(problem, name.lower())]


def describe_cases(problem: Problem) -> list[CaseEntry]:
    """Executes the problem's file."""
    return [entry for workload in problem.workloads for entry in _describe_workload(problem, workload.name)]


def find_baseline_times(problem: Problem, results_dir: Path) -> list[BaselineTime]:
    """Return the latest time for this version of the file, per case, baseline and hardware. Raises StoreError."""
    where = ResultFilter(problem=problem.name, suite=problem.suite, condition="baseline_us is not None")
    found: dict[tuple[str, ...], BaselineTime] = {}
    with ResultStore.open(results_dir, read_only=True) as store:
        for stored in store.load_all(where):
            if stored.evaluation.subject.problem_digest == problem.digest:
                for time in _list_times(stored.id, stored.evaluation):
                    found[time.workload, time.case, time.dtype, time.baseline, time.clock, time.hardware] = time
    return list(found.values())


def _summarise(folder: Path) -> str:
    try:
        return read_suite_settings(folder).summary
    except ProblemError as error:
        return str(error)


def _summarise_problem(problem: Problem | ProblemError) -> str:
    return f"not a problem: {problem}" if isinstance(problem, ProblemError) else problem.summary


def _read_all(problems_dir: Path | None) -> Iterator[tuple[str, Problem | ProblemError]]:
    for suite in list_suites(problems_dir):
        for path in () if suite.hidden_by else list_files(Path(suite.folder)):
            try:
                yield f"{suite.name}/{path.stem}", read_problem(path, suite.name, executes=False)
            except ProblemError as error:
                yield f"{suite.name}/{path.stem}", error


def _simplify(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _is_in_name(word: str, name: str) -> bool:
    """Spaces and underscores do not matter: `layernorm` is in `layer_norm`."""
    return word.replace(" ", "") in _simplify(name).replace(" ", "")


def _collect_text(problem: Problem | ProblemError) -> str:
    if isinstance(problem, ProblemError):
        return ""
    return _simplify(f"{read_docstrings(parse_python(problem.source))} {' '.join(problem.tags)}")


def _describe_workload(problem: Problem, workload: WorkloadName) -> Iterator[CaseEntry]:
    chosen = problem.workload(workload)
    usual = dict(chosen.overrides) if chosen else {}
    for case in problem.list_cases(workload) or (None,):
        sizes = tuple((usual | dict(case.list_sizes(workload) if case else ())).items())
        inputs, error = ((), "") if case and case.is_secret else _describe_inputs(problem, case, workload)
        yield CaseEntry(
            workload=workload,
            case=case.name if case else "",
            sizes=(case or Case(name="file")).describe(sizes),
            inputs=inputs,
            error=error,
            is_secret=case is not None and case.is_secret,
            tolerance=describe_tolerance(case.tolerance) if case and case.tolerance else "",
            timed=case is None or case.timed,
        )


def _describe_inputs(problem: Problem, case: Case | None, workload: WorkloadName) -> tuple[Inputs, str]:
    """Return an error instead of raising it, since other facts are known without execution."""
    try:
        chosen = problem if case is None else problem.take_case(case, workload, random.Random(0))
        return describe_inputs(chosen, workload), ""
    except ProblemError as error:
        return (), str(error)


def _list_times(number: int, evaluation: Evaluation) -> Iterator[BaselineTime]:
    for case, timing in evaluation.timing_by_case.items():
        if timing is not None:
            yield BaselineTime(
                evaluation=number,
                workload=evaluation.subject.workload,
                case=case,
                dtype=evaluation.subject.dtype,
                baseline=timing.baseline,
                time_us=timing.baseline_us,
                clock="device" if timing.clock == "bound" else timing.clock,
                hardware=evaluation.hardware,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """`answers` counts turns, too. `created_at` of a run without files is the start of its first evaluation."""

    name: str
    created_at: str
    models: tuple[str, ...]
    suite: str
    language: str
    problems: int
    answers: int
    evaluations: int
    correct: int
    note: str = ""
    tags: tuple[str, ...] = ()
    error: str = ""


def list_stored_runs(generated_dir: Path, results_dir: Path) -> list[StoredRun]:
    """Return runs by date. A damaged manifest is an `error`. Raises StoreError."""
    rows = defaultdict(list)
    with ResultStore.open(results_dir, read_only=True) as store:
        for row in store.rows():
            rows[row.run].append(row)
    names = {*list_runs(generated_dir), *rows}
    runs = [_describe_run(name, generated_dir, rows.get(name, [])) for name in names]
    return sorted(runs, key=lambda run: (run.created_at, run.name))


def find_stored_run(name: str, generated_dir: Path, results_dir: Path) -> StoredRun:
    """Raises UsageError with the nearest name."""
    runs = {run.name: run for run in list_stored_runs(generated_dir, results_dir)}
    if name not in runs:
        raise UsageError(f"no run {name!r} in {generated_dir} or {results_dir}; {suggest(name, runs)}")
    return runs[name]


def remove_stored_run(run: StoredRun, generated_dir: Path, results_dir: Path) -> None:
    """Remove evaluations, then files, so that it can be repeated. Raises HarnessError if the run is in use."""
    run_dir = locate_run(generated_dir, run.name) if run.name in list_runs(generated_dir) else None
    with nullcontext() if run_dir is None else hold_run(run_dir):
        if run.evaluations:
            with ResultStore.open(results_dir) as store:
                store.remove_run(run.name)
                write_csvs(store, results_dir, generated_dir=generated_dir)
        if run_dir is not None:
            with raising(StoreError, f"remove {run_dir}"):
                shutil.rmtree(run_dir)


def _describe_run(name: str, generated_dir: Path, rows: list[ResultRow]) -> StoredRun:
    manifest, notes, error = _read_files(name, generated_dir)
    started = [row.started_at for row in rows]
    return StoredRun(
        name=name,
        created_at=manifest.created_at if manifest else min(started, default=""),
        models=(manifest.model,) if manifest else tuple(sorted({row.model for row in rows})),
        suite=manifest.suite if manifest else ", ".join(sorted({row.suite for row in rows})),
        language=manifest.language if manifest else ", ".join(sorted({row.language for row in rows})),
        problems=len(manifest.problems) if manifest else len({(row.suite, row.problem) for row in rows}),
        answers=0 if name == FILE_RUN else len(list_keys(locate_run(generated_dir, name))),
        evaluations=len(rows),
        correct=sum(row.outcome == Outcome.CORRECT for row in rows),
        note=notes.note,
        tags=notes.tags,
        error=error,
    )


def _read_files(name: str, generated_dir: Path) -> tuple[RunManifest | None, RunNotes, str]:
    """Return the manifest, the notes, and why one of them is missing."""
    manifest, notes = None, RunNotes()
    if name not in list_runs(generated_dir):
        return manifest, notes, ""
    try:
        manifest = read_manifest(locate_run(generated_dir, name))
        notes = read_notes(locate_run(generated_dir, name))
    except StoreError as error:
        return manifest, notes, str(error)
    return manifest, notes, ""
