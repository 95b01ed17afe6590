"""`harness regress`: judges past generations again, and says what got worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.evaluate import (
    AllowLoadOption,
    ArchOption,
    CacheDirOption,
    CallTimeoutOption,
    ConfinementOption,
    JobsOption,
    ResultsDirOption,
)
from harness.cli.generate import GeneratedDirOption, ProblemsDirOption
from harness.domain import Baseline, Candidate, HarnessError, Outcome, StoreError, Subject, WorkloadName

if TYPE_CHECKING:
    from harness.cli.evaluation import EvaluateOptions
    from harness.executors.local import Task
    from harness.rank.regression import Change
    from harness.store.results import StoredEvaluation

_Setting = tuple[str, WorkloadName, Baseline]


def regress(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs to judge again. [default: all evaluated ones]")] = None,
    *,
    factor: Annotated[
        float, typer.Option(envvar="HARNESS_FACTOR", min=1.0, help="A speedup must change by more than this factor.")
    ] = 1.05,
    arch: ArchOption = None,
    jobs: JobsOption = None,
    allow_load: AllowLoadOption = False,
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
        allow_load=allow_load,
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
    raise typer.Exit(gate(changes))


def judge_again(runs: Sequence[str], options: EvaluateOptions, factor: float) -> list[Change]:
    """One change per stored evaluation of the runs. Raises HarnessError if the harness itself failed on one."""
    from harness.store.results import ResultFilter, ResultStore

    with ResultStore.open(options.results_dir, read_only=True) as store:
        wanted: Sequence[str | None] = runs or (None,)
        stored = [found for run in wanted for found in store.load_all(ResultFilter(run=run))]
        sources = {one.id: store.source(one.evaluation.subject.candidate_digest) for one in stored}
    groups: dict[_Setting, list[StoredEvaluation]] = {}
    for one in stored:
        groups.setdefault(_setting_of(one.evaluation.subject), []).append(one)
    return [
        change for setting, group in groups.items() for change in _judge_group(setting, group, sources, options, factor)
    ]


def _setting_of(subject: Subject) -> _Setting:
    """What one call of the judge is made with. What never reached a device is tried on whatever is here now."""
    device = "auto" if subject.device == "none" else subject.device
    return device, subject.workload, subject.baseline


def _judge_group(
    setting: _Setting,
    group: Sequence[StoredEvaluation],
    sources: Mapping[int, str | None],
    options: EvaluateOptions,
    factor: float,
) -> Iterator[Change]:
    from harness.cli.evaluation import evaluate_tasks
    from harness.rank.regression import compare_evaluations

    device, workload, baseline = setting
    options = replace(options, device=device, workload=workload, baseline=baseline)
    report = evaluate_tasks([_make_task(one, sources[one.id], options) for one in group], options)
    after = {_identify(evaluation.subject): evaluation for _, evaluation in report.evaluations}
    for one in group:
        found = after.get(_identify(one.evaluation.subject))
        if found is None:
            continue  # the problem has lost this workload; evaluate_tasks has said so
        if found.outcome is Outcome.HARNESS_ERROR:
            raise HarnessError(f"judging {found.subject.problem} again failed: {found.message}")
        yield compare_evaluations(one.evaluation, found, factor=factor)


def _identify(subject: Subject) -> tuple[str | int, ...]:
    """What stays the same between two evaluations of one candidate, whatever the device and the problem's version."""
    return subject.run, subject.sample, subject.turn, subject.problem, subject.candidate_digest, subject.language


def _make_task(stored: StoredEvaluation, source: str | None, options: EvaluateOptions) -> Task:
    """The stored candidate on today's version of its problem."""
    from harness.cli.evaluation import find_suite_folder
    from harness.executors.local import Task
    from harness.problems.find import find_problem

    subject = stored.evaluation.subject
    if source is None and subject.candidate_digest:
        raise StoreError(f"the source of candidate {subject.candidate_digest} is not in {options.results_dir}")
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
