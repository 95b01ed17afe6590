"""`harness improve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import JsonOption, RunOption, SuiteOption, Without, print_records
from harness.domain import Language, UsageError
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.search.strategy import SearchOptions

if TYPE_CHECKING:
    from harness.pipeline.chains import SearchReport


def improve(
    run_or_file: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help="A run in generated/, or a program of your own.")
    ],
    *,
    problem: Annotated[str | None, typer.Option(help="With FILE: a problem's name, or a reference file.")] = None,
    language: Annotated[Language | None, typer.Option(help="With FILE. [default: detected from the source]")] = None,
    suite: SuiteOption = "core",
    run: RunOption = None,
    asked: Annotated[GenerateOptions, Without("language")],
    search: SearchOptions,
    options: Annotated[EvaluateOptions, Without("executor", "address", "chip", "gpu", "again", "known_solutions")],
    json_output: JsonOption = False,
) -> None:
    """Ask the model again, with errors and times fed back.

    With a run, continue every sample with the model and settings of the run. With a file, write the best verified
    program to FILE.best.py.

    Interrupt it at any time; the same command resumes.

    Example: harness improve my-run --turns 4

    One program: harness improve kernel.py --problem softmax --model gpt-5 --turns 8

    Exit code with FILE: 0 if a correct program was found, else 1.
    """
    from harness.cli.progress import show_search
    from harness.pipeline.chains import explain_failures
    from harness.pipeline.improve import improve_file, improve_run

    if not run_or_file.endswith(".py"):
        if problem is not None or language is not None:
            option = "--problem" if problem is not None else "--language"
            raise UsageError(f"{option} is for a FILE (.py): a run has its own")
        report = improve_run(run_or_file, asked, options, search, show_search)
        print_search(report, as_json=json_output)
        if report.asked.failed:
            raise typer.Exit(1)
        return
    if problem is None:
        raise UsageError("improving a file needs --problem NAME (or a reference file's path)")
    report, best = improve_file(Path(run_or_file), asked, options, search, language=language, show=show_search)
    print_search(report, as_json=json_output)
    if report.asked.failed:
        raise typer.Exit(1)
    if best is None:
        for line in explain_failures(report):
            typer.echo(line, err=True)
        typer.echo("no correct program was found", err=True)
        raise typer.Exit(1)
    typer.echo(f"{best}", err=json_output)


def print_search(report: SearchReport, *, as_json: bool) -> None:
    """One line per sample on stdout, failures on stderr."""
    from harness.pipeline.chains import describe_search, describe_turns

    if as_json:
        print_records(*describe_search(report))
        return
    for one in report.samples:
        typer.echo(describe_turns(one), err=one.failure)
