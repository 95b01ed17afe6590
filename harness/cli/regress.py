"""`harness regress`: judges past generations again, and says what got worse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.evaluate import (
    ArchOption,
    CacheDirOption,
    CallTimeoutOption,
    ConfinementOption,
    JobsOption,
    ResultsDirOption,
)
from harness.cli.generate import GeneratedDirOption, ProblemsDirOption
from harness.domain import Candidate, HarnessError, Outcome

if TYPE_CHECKING:
    from harness.cli.evaluation import EvaluateOptions
    from harness.executors.local import Task
    from harness.rank.regression import Change
    from harness.store.results import StoredEvaluation

NOTHING_COMPARABLE_EXIT_CODE = 4


def regress(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs to judge again. [default: all evaluated ones]")] = None,
    *,
    factor: Annotated[
        float, typer.Option(envvar="HARNESS_FACTOR", min=1.0, help="A speedup must change by more than this factor.")
    ] = 1.05,
    arch: ArchOption = None,
    jobs: JobsOption = None,
    call_timeout: CallTimeoutOption = 60.0,
    confinement: ConfinementOption = "auto",
    results_dir: ResultsDirOption = Path("results"),
    generated_dir: GeneratedDirOption = Path("generated"),
    problems_dir: ProblemsDirOption = None,
    cache_dir: CacheDirOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON record on stdout.")] = False,
) -> None:
    """Judge past generations again and compare with what is stored.

    Baseline and candidate are both measured now; what is compared are speedups, each against its own baseline.
    Exit code: 0 nothing got worse, 1 something did, 3 the harness failed, 4 nothing was comparable.

    Example: harness regress demo
    """
    from harness.cli.evaluation import EvaluateOptions
    from harness.rank.regression import gate

    options = EvaluateOptions(
        again=True,
        architecture=arch,
        jobs=jobs,
        call_timeout_s=call_timeout,
        confinement=confinement,
        results_dir=results_dir,
        generated_dir=generated_dir,
        problems_dir=problems_dir,
        cache_dir=cache_dir,
    )
    changes = judge_again(runs or (), options, factor)
    if json_output:
        _print_json(changes)
    else:
        _print_table(changes)
    raise typer.Exit(gate(changes) if changes else NOTHING_COMPARABLE_EXIT_CODE)


def judge_again(runs: list[str] | tuple[str, ...], options: EvaluateOptions, factor: float) -> list[Change]:
    """One change per stored evaluation of the runs. Raises HarnessError if the harness itself failed on one."""
    from harness.cli.evaluation import evaluate_tasks
    from harness.rank.regression import compare_evaluations
    from harness.store.results import ResultFilter, ResultStore

    with ResultStore.open(options.results_dir, read_only=True) as store:
        wanted = [None] if not runs else list(runs)
        before = [stored for run in wanted for stored in store.load_all(ResultFilter(run=run))]
        sources = {stored.id: store.source(stored.evaluation.subject.candidate_digest) for stored in before}
    changes = []
    for settings in {(_device(stored), stored.evaluation.subject.workload, stored.evaluation.subject.baseline): None
                     for stored in before}:  # fmt: skip
        device, workload, baseline = settings
        group = [stored for stored in before if _matches(stored, settings)]
        chosen = replace(options, device=device, workload=workload, baseline=baseline)  # type: ignore[arg-type]
        report = evaluate_tasks([_make_task(stored, sources[stored.id], chosen) for stored in group], chosen)
        after = {_identity(evaluation.subject): evaluation for _, evaluation in report.evaluations}
        for stored in group:
            found = after.get(_identity(stored.evaluation.subject))
            if found is None:
                continue
            if found.outcome is Outcome.HARNESS_ERROR:
                raise HarnessError(f"judging {stored.evaluation.subject.problem} again failed: {found.message}")
            changes.append(compare_evaluations(stored.evaluation, found, factor=factor))
    return changes


def _device(stored: StoredEvaluation) -> str:
    device = stored.evaluation.subject.device
    return "auto" if device == "none" else device


def _matches(stored: StoredEvaluation, settings: tuple[str, str, str]) -> bool:
    subject = stored.evaluation.subject
    return (_device(stored), subject.workload, subject.baseline) == settings


def _identity(subject: object) -> tuple[object, ...]:
    names = ("run", "sample", "turn", "problem", "candidate_digest", "language")
    return tuple(getattr(subject, name) for name in names)


def _make_task(stored: StoredEvaluation, source: str | None, options: EvaluateOptions) -> Task:
    """The stored candidate on today's version of its problem."""
    from harness.cli.evaluation import find_suite_folder
    from harness.executors.local import Task
    from harness.problems.find import find_problem

    subject = stored.evaluation.subject
    problem = find_problem(subject.problem, find_suite_folder(subject.suite, options.problems_dir))
    candidate = None if source is None else Candidate(source=source, language=subject.language, rule="stored")
    return Task(subject=replace(subject, problem_digest=problem.digest), problem=problem, candidate=candidate)


def _print_table(changes: list[Change]) -> None:
    from rich.console import Console

    from harness.report.tables import render_changes

    if not changes:
        typer.echo("nothing is stored that could be judged again: evaluate a run first")
        return
    Console().print(render_changes(changes))


def _print_json(changes: list[Change]) -> None:
    from dataclasses import asdict

    from harness.report.records import dump_json

    typer.echo(dump_json([asdict(change) for change in changes]))
