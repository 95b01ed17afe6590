"""Converts submissions to tasks of the executor."""

import re
from dataclasses import replace
from pathlib import Path

from harness.domain import EMULATED, Language, Problem, UsageError
from harness.domain.errors import suggest
from harness.executors.executor import Executor, Origin, Task, make_task
from harness.languages import CPU_LANGUAGE, GPU_LANGUAGE, LANGUAGES, detect_language
from harness.pipeline.data_folders import find_suite_folder, list_suite_names, list_suite_roots
from harness.pipeline.evaluate import choose_workload, extract_program, read_submission
from harness.pipeline.options import EvaluateOptions, read_baselines
from harness.problems.discovery import list_files, parse_problem, read_problem
from harness.problems.workloads import describe_lacking_workload, provide_workload
from harness.service.queue import Submission

RUN, INLINE_SUITE = "service", "submitted"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")  # no path: requests must not name files


def find_submitted_problem(
    submission: Submission, problems_dir: Path | None, *, trusts_references: bool = False
) -> Problem:
    """Does not execute an untrusted reference, so its cases may be missing. Raises UsageError and ProblemError."""
    if submission.reference is None:
        given, _, name = (submission.problem or "").rpartition("/")
        suite = given or submission.suite
        _require_name(name)
        folder = find_named_suite(suite, problems_dir)
        if not (folder / f"{name}.py").is_file():
            known = [path.stem for path in list_files(folder)]
            raise UsageError(f"no problem {name!r} in suite {suite!r}; {suggest(name, known)}")
        problem = read_problem(folder / f"{name}.py", folder.name)
    else:
        problem = _parse_reference(submission.reference, executes=trusts_references)
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


def make_submitted_task(submission: Submission, problem: Problem, executor: Executor, owner: str = "") -> Task:
    """Waits for the start of GPU processes. Raises HarnessError."""
    language = submission.language or _detect_evaluated(submission.candidate or submission.completion or "", executor)
    obstacle = _find_obstacle(language, executor)
    if obstacle is not None:
        raise UsageError(obstacle)
    if submission.completion is not None:
        candidate, notes = extract_program(submission.completion, language)
    else:
        candidate, notes = read_submission(submission.candidate or "", language)
    devices = executor.devices(language)
    workload = choose_workload(problem, devices[0].name, EvaluateOptions(workload=submission.workload))
    finds_sizes_later = bool(owner) and workload == "reduced"
    provided = problem if finds_sizes_later else provide_workload(problem, workload, language)
    if provided is None:
        raise UsageError(describe_lacking_workload(problem.name, submission.workload))
    task = make_task(
        provided,
        candidate,
        Origin(run=RUN, model=RUN),
        language=language,
        workload=workload,
        baselines=read_baselines(submission.baseline),
        notes=notes,
    )
    return replace(task, owner=owner)


def _detect_evaluated(source: str, executor: Executor) -> Language:
    """Evaluate programs without a kernel or a device as another language: authors could avoid a verdict."""
    found = detect_language(source)
    return found if _find_obstacle(found, executor) is None else choose_prompted_language(executor)


def choose_prompted_language(executor: Executor) -> Language:
    wanted = (GPU_LANGUAGE, CPU_LANGUAGE, *LANGUAGES)
    return next((language for language in wanted if _find_obstacle(language, executor) is None), GPU_LANGUAGE)


def _find_obstacle(language: Language, executor: Executor) -> str | None:
    devices, rules = executor.devices(language), LANGUAGES[language]
    if not devices:
        return f"this service has no device for language {language}"
    emulates = devices[0].name == EMULATED
    if emulates and rules.compiles_only:
        return f"language {language} needs a GPU: the emulated device only compiles its kernels"
    return rules.find_missing(emulates)


def _require_name(name: str) -> None:
    """Raises UsageError for anything that could be a path."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name[:100]!r} is no name of a problem or a suite")


def find_named_suite(suite: str, problems_dir: Path | None) -> Path:
    """Raises UsageError without folder names of this machine, since clients read it."""
    _require_name(suite)
    known = list_suite_names(list_suite_roots(problems_dir))
    if suite not in known:
        raise UsageError(f"no suite {suite!r}; {suggest(suite, known)}")
    return find_suite_folder(suite, problems_dir)


def _parse_reference(reference: str, *, executes: bool) -> Problem:
    try:
        problem = parse_problem(reference, Path("reference.py"), INLINE_SUITE, executes=executes)
    except (RecursionError, MemoryError) as error:  # of Python's parser
        raise UsageError("the reference is nested too deeply for Python's parser") from error
    return replace(problem, requires_kernel=True)
