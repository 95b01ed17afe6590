"""`harness evaluate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import complete_problem, complete_suite
from harness.cli.options import JsonOption, RunsArgument
from harness.cli.output import print_records, print_rich
from harness.domain import EMULATED, FILE_RUN, Language, Outcome, UsageError
from harness.pipeline.options import EvaluateOptions

if TYPE_CHECKING:
    from harness.domain import Evaluation, Finding
    from harness.pipeline.evaluations import EvaluationReport
    from harness.store.results import StoredEvaluation

USAGE_EXIT_CODE = 2
NO_VERDICT_EXIT_CODE = 3  # as for failures of the harness
SHOWN_FAILURES = 5
SHOWN_LINES = 3


def evaluate(
    runs: RunsArgument = None,
    *,
    candidate: Annotated[
        Path | None, typer.Option(help="Evaluate this file (- reads standard input) instead of a run.")
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option(help="With --candidate: a name, SUITE/NAME, or a file's path.", autocompletion=complete_problem),
    ] = None,
    language: Annotated[
        Language | None, typer.Option(help="With --candidate. [default: detected from the source]")
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            envvar="HARNESS_SUITE", help="With --candidate: the suite of NAME.", autocompletion=complete_suite
        ),
    ] = "core",
    options: EvaluateOptions,
    json_output: JsonOption = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="With --candidate: always exit with 0.")] = False,
) -> None:
    """Build, verify and time candidates, and store the results.

    Without a GPU, CUDA candidates run on an emulated device: verified, not timed.

    Interrupt it at any time; the same command resumes. Concurrent commands share the work.

    Example: harness evaluate my-run --workload small

    One program: harness evaluate --candidate kernel.py --problem softmax --json

    Exit code with --candidate: 0 correct, 1 not correct, 2 problem_error, 3 not evaluated (harness_error, not_run).
    Of runs: 0.
    """
    from harness.cli.progress import show_steps
    from harness.pipeline.evaluate import file_task, sample_tasks
    from harness.pipeline.evaluations import evaluate_tasks
    from harness.problems.workloads import describe_lacking_workload

    if candidate is None:
        if problem is not None:
            raise UsageError("--problem needs --candidate; to evaluate runs, name the runs")
        tasks = sample_tasks(runs or _all_runs(options.generated_dir), options)
    else:
        if problem is None or runs:
            raise UsageError("--candidate FILE needs --problem NAME (or a reference file's path), and no run")
        tasks = [file_task(candidate, problem, language, suite, options)]
    report = evaluate_tasks(tasks, options, show_steps)
    evaluated = [one.evaluation.subject.device for one in report.evaluations]
    if options.gpu and evaluated and EMULATED not in evaluated:
        typer.echo("--gpu chooses the GPU to emulate; nothing was emulated here", err=True)
    if candidate is not None and report.without_workload:
        raise UsageError(describe_lacking_workload(str(problem), options.workload))
    if json_output:
        print_json(report)
    else:
        print_report(report, options)
        print_paths(options)
    if candidate is not None and not exit_zero:
        raise typer.Exit(_choose_exit_code(report))


def _choose_exit_code(report: EvaluationReport) -> int:
    outcome = report.all[-1].evaluation.outcome if report.all else Outcome.HARNESS_ERROR
    if outcome is Outcome.PROBLEM_ERROR:
        return USAGE_EXIT_CODE
    if not outcome.counts_against_model:
        return NO_VERDICT_EXIT_CODE
    return 0 if outcome is Outcome.CORRECT else 1


def _all_runs(generated_dir: Path) -> tuple[str, ...]:
    from harness.store.runs import list_runs

    runs = list_runs(generated_dir)
    if not runs:
        raise UsageError(f"no runs in {generated_dir}/: make one with harness generate, or name one with --candidate")
    return runs


def print_report(report: EvaluationReport, options: EvaluateOptions) -> None:
    from harness.report.terminal.tables import render_evaluations
    from harness.store.columns import make_row

    single = report.all[0] if len(report.all) == 1 else None
    shown = report.all if single else sorted(report.evaluations, key=lambda one: one.id)
    if shown:
        print_rich(render_evaluations(make_row(one.evaluation, one.id) for one in shown))
    if single is not None:
        _print_reason(single, report.sources.get(single.evaluation.subject.candidate_digest, ""))
    if report.skipped:
        counts = Counter(one.evaluation.outcome for one in report.skipped)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        known = f"{len(report.skipped)} already evaluated{'' if single else f': {outcomes}'}"
        typer.echo(f"{known} (--again re-evaluates them)")
    if report.elsewhere:
        typer.echo(f"{len(report.elsewhere)} evaluated by another process")
    if report.without_workload:
        names = ", ".join(sorted(set(report.without_workload)))
        typer.echo(f"no {options.workload or 'reduced'} workload: {names}")
    if single is None:
        _print_failures(report)


def _print_failures(report: EvaluationReport) -> None:
    """Print each message once: whole for the harness's own failures, otherwise the first line."""
    from harness.report.terminal.tables import style_text

    by_message = {one.evaluation.message: one for one in reversed(report.evaluations) if one.evaluation.message}
    failed = [found for found in reversed(by_message.values()) if found.evaluation.outcome is not Outcome.CORRECT]
    failed.sort(key=lambda found: not found.evaluation.outcome.is_error)
    for stored in failed[:SHOWN_FAILURES]:
        one = stored.evaluation
        said = f"{one.outcome} on {one.subject.problem}: {one.message}"
        if one.outcome.is_error:
            typer.echo(said, err=True)
        else:
            print_rich(style_text(f"{said.splitlines()[0]} (harness show {stored.id})"))
    if len(failed) > SHOWN_FAILURES:
        typer.echo(
            f"{len(failed) - SHOWN_FAILURES} more messages: harness results --columns id,problem,outcome,message"
        )


def _print_reason(stored: StoredEvaluation, source: str) -> None:
    from harness.pipeline.search_report import PLAIN_TORCH, lacks_kernel
    from harness.report.terminal.compiler_text import CompilerText
    from harness.report.terminal.tables import style_text

    evaluation = stored.evaluation
    causes = _list_causes(evaluation)
    for cause in causes:
        print_rich(CompilerText(cause.message))
        _print_lines(source, [cause])
    if evaluation.message:
        print_rich(CompilerText(f"{evaluation.outcome}: {evaluation.message}"))
        quoted = [one for one in evaluation.findings if one.message in evaluation.message]
        _print_lines(source, [*quoted, *(one for one in evaluation.findings if one.severity == "fatal")])
    for severity in ("warning", "note"):
        for finding in evaluation.findings:
            if finding.severity == severity and finding.message not in evaluation.message and finding not in causes:
                is_as_of_a_compiler = any(f": {word}: " in finding.message for word in (severity, "error"))
                prefix = "" if is_as_of_a_compiler else f"{severity}: "
                print_rich(style_text(f"{prefix}{finding.message}"))
    if evaluation.subject.run == FILE_RUN and lacks_kernel(evaluation):
        typer.echo(PLAIN_TORCH)
    meaning = "" if evaluation.outcome is Outcome.CORRECT else f", harness explain {evaluation.outcome}"
    typer.echo(f"Details: harness show {stored.id}{meaning}")


def _list_causes(evaluation: Evaluation) -> list[Finding]:
    """Return kernel errors of a program that failed. A message that quotes several begins with the first cause."""
    kernels = [one for one in evaluation.findings if one.evidence.startswith("in kernel ")]
    if evaluation.outcome is Outcome.CORRECT or any(one.message in evaluation.message for one in kernels):
        return []
    return [one for one in kernels if one.severity == "warning"]


def _print_lines(source: str, findings: Iterable[Finding]) -> None:
    from harness.analysis.source_locations import find_lines
    from harness.report.terminal.tables import style_text

    numbers = dict.fromkeys(number for one in findings for number in find_lines(one, source))
    for number in list(numbers)[:SHOWN_LINES]:
        print_rich(style_text(f"line {number} of the candidate: {source.splitlines()[number - 1].strip()}"))


def print_paths(options: EvaluateOptions) -> None:
    typer.echo(f"{options.results_dir / 'evaluations.csv'}  {options.results_dir / 'leaderboard.csv'}")


def print_json(report: EvaluationReport) -> None:
    """Include evaluations found in the store or made by another process."""
    from harness.report.export.json_records import evaluation_record

    print_records(*map(evaluation_record, report.all))
