"""Evaluates stored samples or a file, which may be a model's answer, for `harness evaluate`, `run` and `regress`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.domain import (
    EMULATED,
    FILE_RUN,
    IN_REASONING,
    Candidate,
    Completion,
    Finding,
    Language,
    Problem,
    Sample,
    UsageError,
    WorkloadName,
)
from harness.domain.errors import suggest
from harness.domain.files import decode_python, raising
from harness.evaluation.integrity.static_checks import find_syntax_error
from harness.executors.executor import Origin, Task, make_task
from harness.languages import detect_language
from harness.pipeline.data_folders import find_named_problem, find_run_problem
from harness.pipeline.options import EvaluateOptions
from harness.problems.watched_process import describe_inputs, set_reference_limit
from harness.problems.workloads import describe_lacking_workload, provide_workload
from harness.store.runs import find_run, load_samples, read_manifest, require_unedited

if TYPE_CHECKING:
    from harness.executors.cluster.executor import RayExecutor
    from harness.executors.local import LocalExecutor
    from harness.generate.sampler import Plan

STDIN = Path("-")
_EXTRACT_STDIN = "COMMAND | harness extract - | harness evaluate --candidate -"
_BEGINNINGS_OF_ANSWERS = ("```", "~~~", "<think")


def read_candidate(file: Path) -> str:
    """`-` is standard input. Raises UsageError, also for a model's answer instead of a program."""
    with raising(UsageError, f"read the candidate {file}", also=(ValueError,)):
        source = decode_python(sys.stdin.buffer.read() if file == STDIN else file.read_bytes())
    if not source.strip():
        raise UsageError(f"{name_candidate(file)} is empty: it holds no program")
    if find_syntax_error(source) is not None and _is_answer(source):
        raise UsageError(
            f"{name_candidate(file)} is no Python program, but looks like a model's answer: take the program out of it "
            f"first, with `{_EXTRACT_STDIN if file == STDIN else f'harness extract {file} > candidate.py'}`"
        )
    return source


def read_submission(text: str, language: Language) -> tuple[Candidate | None, tuple[Finding, ...]]:
    """Return (the program, or the one in an answer; notes)."""
    if find_syntax_error(text) is not None and _is_answer(text):
        return extract_program(text, language)
    return Candidate(source=text, language=language, rule="file"), ()


def extract_program(answer: str, language: Language) -> tuple[Candidate | None, tuple[Finding, ...]]:
    from harness.generate.extraction.extractor import extract_candidate
    from harness.generate.extraction.notes import explain_reasoning

    candidate = extract_candidate(Completion(text=answer), language)
    reason = "" if candidate else explain_reasoning(answer)
    return candidate, (Finding(check=IN_REASONING, severity="note", message=reason),) if reason else ()


def name_candidate(file: Path) -> str:
    return "stdin" if file == STDIN else file.name


def _is_answer(text: str) -> bool:
    """The text does not parse. A program with a syntax error may begin with a shorter valid one."""
    if text.lstrip().startswith(_BEGINNINGS_OF_ANSWERS):
        return True
    from harness.generate.extraction.extractor import find_code  # programs need none of it

    found = find_code(text)
    return found is not None and not text.lstrip().startswith(found.source.lstrip().partition("\n")[0])


LOG = logging.getLogger(__name__)


def sample_tasks(runs: Sequence[str], options: EvaluateOptions, problem: str | None = None) -> list[Task]:
    """Make one task per stored sample, of only the `problem` (NAME or SUITE/NAME). Raises UsageError."""
    tasks, known = [], dict[str, None]()
    for run in runs:
        run_dir = find_run(options.generated_dir, run)
        manifest = read_manifest(run_dir)
        problems: dict[str, Problem] = {}
        for sample in load_samples(run_dir):
            name = sample.key.problem
            known[name] = None
            if problem not in (None, name, f"{manifest.suite}/{name}"):
                continue
            require_unedited(run_dir, sample)
            if name not in problems:
                problems[name] = find_run_problem(run_dir, manifest, name, options.problems_dir)
            tasks.append(make_sample_task(sample, problems[name], options))
    if problem is not None and not tasks:
        raise UsageError(f"no answer to problem {problem!r} in {', '.join(runs)}; {suggest(problem, list(known))}")
    return tasks


def check_plan(plan: Plan, options: EvaluateOptions) -> list[str]:
    """Return the problems without the workload. Raises if the plan cannot be evaluated here."""
    from harness.sandbox.devices import find_device

    set_reference_limit(options.reference_timeout_s)
    opened = find_device(options.device, plan.manifest.language, options.gpu)
    device = "" if opened is None else opened.name
    lacking = []
    for problem in plan.problems:
        workload = choose_workload(problem, device, options)
        provided = provide_workload(problem, workload, plan.manifest.language)
        if provided is None:
            lacking.append(problem.name)
        else:
            describe_inputs(provided, workload)  # it loads
    if len(lacking) == len(plan.problems):
        raise UsageError(describe_lacking_workload(", ".join(lacking), options.workload))
    if lacking:
        names, workload = ", ".join(lacking), options.workload or "reduced"
        LOG.warning("%s: no %s workload, neither asked for nor evaluated", names, workload)
    return lacking


def file_task(file: Path, problem: str, language: Language | None, suite: str, options: EvaluateOptions) -> Task:
    """`language` None is detected. Raises UsageError."""
    source = read_candidate(file)
    language = language or detect_language(source)
    candidate = Candidate(source=source, language=language, rule="file")
    found = find_named_problem(problem, suite, options.problems_dir)
    origin = Origin(run=FILE_RUN, model=name_candidate(file))
    return make_candidate_task(found, candidate, origin, options, language=language)


def make_sample_task(sample: Sample, problem: Problem, options: EvaluateOptions) -> Task:
    from harness.generate.extraction.notes import note_sample

    origin = Origin(
        run=sample.key.run,
        model=sample.model,
        sample=sample.key.sample,
        turn=sample.key.turn,
        prompt=sample.prompt,
        suite=sample.suite,
    )
    return make_candidate_task(
        problem, sample.candidate, origin, options, language=sample.language, notes=note_sample(sample)
    )


def make_candidate_task(
    problem: Problem,
    candidate: Candidate | None,
    origin: Origin,
    options: EvaluateOptions,
    *,
    language: Language,
    notes: tuple[Finding, ...] = (),
) -> Task:
    return make_task(
        problem,
        candidate,
        origin,
        language=language,
        workload=options.workload or "full",
        baselines=options.baselines,
        dtype=options.dtype,
        notes=notes,
    )


def choose_workload(problem: Problem, device: str, options: EvaluateOptions) -> WorkloadName:
    """The default is full; on the emulated device small, else reduced."""
    if options.workload is not None or device != EMULATED:
        return options.workload or "full"
    return "small" if problem.workload("small") is not None else "reduced"


def open_executor(options: EvaluateOptions, tasks: Sequence[Task] = ()) -> LocalExecutor | RayExecutor:
    """`tasks` are those that follow, if known. Raises UsageError and DeviceError."""
    builds_ahead = len(tasks) > 1 and any(task.builds_extensions for task in tasks)
    if options.executor == "local":
        from harness.executors.local import LocalExecutor

        return LocalExecutor(options, builds_ahead=builds_ahead)
    from harness.executors.cluster.connection import ClusterSettings
    from harness.executors.cluster.executor import RayExecutor

    return RayExecutor(ClusterSettings(address=options.address, chip=options.chip), options, builds_ahead=builds_ahead)
