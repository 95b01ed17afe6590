"""`harness evaluate`."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.analysis.ranking import RankedFile
from harness.analysis.source_locations import find_lines
from harness.cli.main import FAILURE_EXIT_CODE, USAGE_EXIT_CODE
from harness.cli.options import JsonOption, complete_problem, complete_run, complete_suite, print_records, print_rich
from harness.cli.progress import show_steps
from harness.domain import EMULATED, FILE_RUN, Evaluation, Finding, Language, Outcome, UsageError
from harness.pipeline.options import EVERY_TASK, EvaluateOptions, Selection
from harness.problems.workloads import describe_lacking_workload
from harness.report.terminal.sources import CompilerText
from harness.report.terminal.tables import (
    NARROW,
    choose_columns,
    format_interval,
    list_notes,
    render_evaluations,
    render_ranked_files,
    style_text,
)
from harness.report.verdict_text import PLAIN_TORCH, lacks_kernel, state_verdict
from harness.store.columns import make_row
from harness.store.completions import locate_answer, read_origin
from harness.store.runs import list_runs

if TYPE_CHECKING:
    from harness.executors.executor import Task
    from harness.pipeline.evaluations import EvaluationReport
    from harness.pipeline.files import WatchEvent
    from harness.store.results import StoredEvaluation

NO_VERDICT_EXIT_CODE = FAILURE_EXIT_CODE
SHOWN_FAILURES = 5
SHOWN_LINES = 3
UNTRIED = "probes"  # whose notes, on what was not tried, say nothing about the program
FIRST = (
    "the first evaluation starts PyTorch and compilers, which takes 10 to 30 s, and\n"
    "minutes for the first C++ or CUDA build of a machine"
)


def evaluate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs in generated/; files of candidates, with --problem (- reads standard input); or folders that "
            "harness import reads. [default: all runs]",
            metavar="RUN|FILE|FOLDER",
            autocompletion=complete_run,
        ),
    ] = None,
    *,
    candidate: Annotated[Path | None, typer.Option(help="A file, as FILE.")] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            help="The problem of the files: a name, SUITE/NAME, or a file's path. With runs: only their answers to it.",
            autocompletion=complete_problem,
        ),
    ] = None,
    language: Annotated[
        Language | None, typer.Option(help="Language of the files. [default: detected from each source]")
    ] = None,
    suite: Annotated[
        str,
        typer.Option(envvar="HARNESS_SUITE", help="With --problem: the suite of NAME.", autocompletion=complete_suite),
    ] = "core",
    watch: Annotated[bool, typer.Option("--watch", help="Evaluate files again at every change, until Ctrl-C.")] = False,
    selection: Selection,
    options: EvaluateOptions,
    json_output: JsonOption = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="With files: always exit with 0.")] = False,
) -> None:
    """Build, verify and time candidates, and store the results.

    Without a GPU, CUDA and Triton candidates run on an emulated device: verified, not timed.

    Interrupt it at any time; the same command resumes. Concurrent commands share the work.

    Example: harness evaluate my-run --workload small

    One problem: harness evaluate my-run --problem softmax

    Programs: harness evaluate kernel.py --problem softmax --json

    Ranked: harness evaluate a.py b.py c.py --problem my_operator.py

    While you edit: harness evaluate kernel.py --problem my_operator.py --watch

    Solutions of another benchmark: harness evaluate flashinfer-trace

    Exit code with files: 0 correct, 1 not correct, 2 problem_error, 3 not evaluated (harness_error, not_run); of
    several files the largest. Of runs: 0.
    """
    from harness.pipeline.evaluate import file_task

    options = replace(options, again=options.again or selection.last_failed)
    if watch and (problem is None or selection != EVERY_TASK or options.executor != "local"):
        raise UsageError("--watch needs files and --problem, and excludes -x, --last-failed and --executor ray")
    names = _import_folders(names or (), options)
    if candidate is None and (problem is None or _are_runs(names or (), options.generated_dir)):
        _evaluate_runs(tuple(names or ()), problem, options, selection, json_output=json_output)
        return
    if problem is None:
        raise UsageError("--candidate FILE needs --problem NAME (or a reference file's path)")
    if not (names or candidate):
        raise UsageError("--problem needs files, --candidate or runs: name them")
    files = list(dict.fromkeys([*([candidate] if candidate else []), *map(Path, names or ())]))
    if watch:
        _watch(files, problem, lambda file: file_task(file, problem, language, suite, options), options, json_output)
        return
    tasks = {file: file_task(file, problem, language, suite, options) for file in files}
    exit_code = _evaluate_files(tasks, problem, options, selection, json_output=json_output)
    if not exit_zero:
        raise typer.Exit(exit_code)


def _import_folders(names: Sequence[str], options: EvaluateOptions) -> list[str]:
    """Return the names with the imported runs in place of folders that are no runs."""
    known, found = set(list_runs(options.generated_dir)) if any(map(os.path.isdir, names)) else set(), list[str]()
    for name in names:
        if name in known or not os.path.isdir(name):  # noqa: PTH112 - names need not be paths
            found.append(name)
            continue
        from harness.cli.export import import_source

        found += import_source(Path(name), options)
    if names and not found:
        raise UsageError(
            f"{', '.join(names)}: problems without programs. Programs for them: "
            "harness run --suite SUITE --model MODEL, or harness evaluate FOLDER_OF_A_RUN"
        )
    return found


def _are_runs(names: Sequence[str], generated_dir: Path) -> bool:
    return bool(names) and set(names) <= set(list_runs(generated_dir)) and not any(map(os.path.isfile, names))


def _evaluate_runs(
    runs: tuple[str, ...], problem: str | None, options: EvaluateOptions, selection: Selection, *, json_output: bool
) -> None:
    from harness.pipeline.evaluate import sample_tasks
    from harness.pipeline.evaluations import evaluate_tasks

    for name in runs:
        if name.endswith(".py"):
            raise UsageError(f"{name} is a file: add --problem NAME (or a reference file's path)")
    tasks = sample_tasks(runs or _all_runs(options.generated_dir), options, problem)
    report = evaluate_tasks(tasks, options, show_steps, selection)
    _note_real_devices(report, options)
    if json_output:
        print_json(report.all)
        return
    print_report(report, options)
    _print_left_out(len(tasks), report, selection)
    print_paths(options)


def _evaluate_files(
    tasks: Mapping[Path, Task], problem: str, options: EvaluateOptions, selection: Selection, *, json_output: bool
) -> int:
    """Return the exit code."""
    from harness.pipeline.files import evaluate_files

    report, ranked = evaluate_files(tasks, options, show_steps, selection)
    _note_real_devices(report, options)
    if report.without_workload and not ranked:
        raise UsageError(describe_lacking_workload(problem, options.workload))
    if json_output:
        print_json(one.stored for one in ranked)
    else:
        if len(tasks) > 1:
            print_ranking(ranked)
        print_report(report, options, ranked=len(tasks) > 1)
        _print_left_out(len(tasks), report, selection)
        print_paths(options)
    if selection.last_failed and not ranked:
        return 0
    return max((_code_of(one.evaluation.outcome) for one in ranked), default=NO_VERDICT_EXIT_CODE)


def _watch(
    files: list[Path], problem: str, make_task: Callable[[Path], Task], options: EvaluateOptions, json_output: bool
) -> None:
    """Raises KeyboardInterrupt: it has no other end."""
    import asyncio

    from harness.pipeline.files import watch_files

    def report(event: WatchEvent) -> None:
        if event.reason:
            typer.echo(f"{event.file}: {event.reason}", err=True)
        elif not json_output:
            verdict = event.evaluation if event.stored is None else event.stored.evaluation
            assert verdict is not None
            prefix, more = ("", "") if event.stored is not None else ("outputs ", "; times and more checks follow")
            speedup = f" {format_interval(verdict)}" if verdict.timing is not None else ""
            said = f"{prefix if verdict.outcome is Outcome.CORRECT else ''}{verdict.outcome}{speedup}"
            line = f"{time.strftime('%H:%M:%S')} {event.file}: {said} ({event.after_s:.1f} s){more}"
            print_rich(style_text(line))
            if event.stored is not None:
                _print_reason(event.stored, event.source)
        elif event.stored is not None:
            print_json([event.stored])

    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise UsageError(f"cannot watch {missing}: there is no such file")
    typer.echo(f"watching {', '.join(map(str, files))}; Ctrl-C ends it\n{FIRST}", err=True)
    asyncio.run(watch_files(files, Path(problem), make_task, options, report))


def _note_real_devices(report: EvaluationReport, options: EvaluateOptions) -> None:
    evaluated = [one.evaluation.subject.device for one in report.evaluations]
    if options.gpu and evaluated and EMULATED not in evaluated:
        typer.echo("--gpu chooses the GPU to emulate; nothing was emulated here", err=True)


def _code_of(outcome: Outcome) -> int:
    if outcome is Outcome.PROBLEM_ERROR:
        return USAGE_EXIT_CODE
    if not outcome.counts_against_model:
        return NO_VERDICT_EXIT_CODE
    return 0 if outcome is Outcome.CORRECT else 1


def _print_left_out(tasks: int, report: EvaluationReport, selection: Selection) -> None:
    left_out = tasks - len(report.all) - len(report.without_workload)
    if left_out and selection.fails_fast:
        typer.echo(f"{left_out} not evaluated after the first that is not correct (-x)")
    elif left_out and selection.last_failed:
        typer.echo(f"{left_out} not evaluated: the last verdict is correct, or there is none (--last-failed)")


def _all_runs(generated_dir: Path) -> tuple[str, ...]:
    runs = list_runs(generated_dir)
    if not runs:
        raise UsageError(f"no runs in {generated_dir}/: make one with harness generate, or name files and --problem")
    return runs


def print_ranking(ranked: Sequence[RankedFile]) -> None:
    print_rich(render_ranked_files(ranked))
    for note in list_notes(ranked):
        typer.echo(note)


def print_report(report: EvaluationReport, options: EvaluateOptions, *, ranked: bool = False) -> None:
    """With `ranked`, the ranking says the verdicts."""
    single = report.all[0] if len(report.all) == 1 and not ranked else None
    if report.all and not ranked:
        rows = [make_row(one.evaluation, one.id) for one in report.all]
        folders = {row.id: locate_answer(options.generated_dir, row) for row in rows}
        solutions = {number: read_origin(folder, turn=0).solution for number, folder in folders.items()}
        print_rich(render_evaluations(rows, choose_columns(NARROW, rows), solutions))
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
    if single is None and not ranked:
        _print_unranked(report)
        _print_failures(report)


def _print_unranked(report: EvaluationReport) -> None:
    timed = [one for one in report.all if one.evaluation.outcome is Outcome.CORRECT and one.evaluation.timing]
    unranked = [one.id for one in timed if one.evaluation.speedup is None]
    if unranked:
        typer.echo(f"{len(unranked)} correct, with times that are not ranked; the reason: harness show {unranked[0]}")


def _print_failures(report: EvaluationReport) -> None:
    """Print each message once: whole for the harness's own failures, otherwise the first line."""
    by_message = {one.evaluation.message: one for one in reversed(report.all) if one.evaluation.message}
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
    evaluation = stored.evaluation
    if evaluation.outcome is Outcome.CORRECT and evaluation.timing is not None and evaluation.speedup is None:
        print_rich(style_text(state_verdict(evaluation)))
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
            if finding.check == UNTRIED and finding.severity == "note":
                continue
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
    numbers = dict.fromkeys(number for one in findings for number in find_lines(one, source))
    for number in list(numbers)[:SHOWN_LINES]:
        print_rich(style_text(f"line {number} of the candidate: {source.splitlines()[number - 1].strip()}"))


def print_paths(options: EvaluateOptions) -> None:
    typer.echo(f"{options.results_dir / 'evaluations.csv'}  {options.results_dir / 'leaderboard.csv'}")


def print_json(found: Iterable[StoredEvaluation]) -> None:
    """Include evaluations found in the store or made by another process."""
    from harness.report.export.json_records import evaluation_record

    print_records(*map(evaluation_record, found))
