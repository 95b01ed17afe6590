"""Turns submissions into tasks of the executor."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from harness.domain import Candidate, Completion, Problem, UsageError
from harness.executors.executor import Executor
from harness.executors.tasks import Origin, Task, make_task
from harness.generate.extraction.extractor import extract_candidate
from harness.languages import LANGUAGES, detect_language
from harness.pipeline.data_folders import find_suite_folder
from harness.pipeline.evaluate import EvaluateOptions, describe_lacking_workload, place_problem
from harness.problems.discovery import list_files, parse_problem, read_problem
from harness.service.submission import Submission

RUN, INLINE_SUITE = "service", "submitted"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")  # no path: requests must not name files


def find_submitted_problem(submission: Submission, problems_dir: Path | None) -> Problem:
    """Raises UsageError and ProblemError, also for a workload that the problem lacks."""
    if submission.reference is None:
        problem = _find_named(submission, problems_dir)
    else:
        problem = _parse_reference(submission.reference)
    if submission.workload not in (None, "reduced") and problem.workload(submission.workload) is None:
        raise UsageError(describe_lacking_workload(problem.name, submission.workload))
    if submission.dtype is not None:
        problem = problem.in_precision(submission.dtype)
    if submission.requires_kernel is None:
        return problem
    language = submission.language
    if submission.requires_kernel and language is not None and not LANGUAGES[language].writes_kernels:
        raise UsageError(f"requires_kernel: no kernel is written in language {language}")
    return replace(problem, requires_kernel=submission.requires_kernel)


def make_submitted_task(submission: Submission, problem: Problem, executor: Executor) -> Task:
    """Waits for the start of GPU processes. Raises HarnessError."""
    candidate, language = None, submission.language or detect_language(submission.candidate or "")
    if submission.completion is not None:
        language = submission.language or detect_language(submission.completion)
        candidate = extract_candidate(Completion(text=submission.completion), language)
    elif submission.candidate is not None:
        candidate = Candidate(source=submission.candidate, language=language, rule="file")
    options = EvaluateOptions(workload=submission.workload)
    _, workload, provided = place_problem(problem, language, executor.devices(language), options)
    if provided is None:
        raise UsageError(describe_lacking_workload(problem.name, submission.workload))
    return make_task(
        provided,
        candidate,
        Origin(run=RUN, model=RUN),
        language=language,
        workload=workload,
        baseline=submission.baseline,
    )


def require_name(name: str) -> None:
    """Raises UsageError for anything that could be a path."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name[:100]!r} is no name of a problem or a suite")


def _find_named(submission: Submission, problems_dir: Path | None) -> Problem:
    given, _, name = (submission.problem or "").rpartition("/")
    suite = given or submission.suite
    require_name(name)
    require_name(suite)
    folder = find_suite_folder(suite, problems_dir)
    if not (folder / f"{name}.py").is_file():
        known = ", ".join(path.stem for path in list_files(folder)[:10])
        raise UsageError(f"no problem {name!r} in suite {suite!r}; it has {known}, ...")
    return read_problem(folder / f"{name}.py", folder.name)


def _parse_reference(reference: str) -> Problem:
    try:
        problem = parse_problem(reference, Path("reference.py"), INLINE_SUITE)
    except (RecursionError, MemoryError) as error:  # of Python's parser
        raise UsageError("the reference is nested too deeply for Python's parser") from error
    return replace(problem, requires_kernel=True)
