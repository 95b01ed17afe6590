"""`harness generate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import JsonOption, ProblemOption, RunOption, SuiteOption
from harness.cli.panels import Only
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions

if TYPE_CHECKING:
    from harness.generate.sampler import SessionReport

FAILED_EXIT_CODE = 1
INTERRUPTED_EXIT_CODE = 130


DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        envvar="HARNESS_DRY_RUN",
        show_envvar=False,
        help="Print the prompts without sending them.",
        rich_help_panel=GenerateOptions.title,
    ),
]


def generate(
    *,
    suite: SuiteOption = "core",
    problem: ProblemOption = None,
    run: RunOption = None,
    dry_run: DryRunOption = False,
    options: GenerateOptions,
    evaluation: Annotated[EvaluateOptions, Only("dtype")],
    json_output: JsonOption = False,
) -> None:
    """Ask a model for kernels and store its answers.

    Interrupt it at any time; the same command resumes.

    Example: harness generate --model gpt-5 --problem softmax --samples 4 --prompt tips

    A local server: harness generate --model qwen3 --base-url http://localhost:8000/v1
    """
    from harness.pipeline.generate import describe_report, generate_run, print_dry_run, print_notes

    if dry_run:
        print_dry_run(options, as_json=json_output)
        return
    try:
        report = generate_run(options)
    except KeyboardInterrupt:
        typer.echo("interrupted: received answers are stored; repeat the command to resume", err=True)
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    print_notes(report)
    if json_output:
        typer.echo(json.dumps(describe_report(report)))
    else:
        _print_report(report)
    if report.failed:
        raise typer.Exit(FAILED_EXIT_CODE)


def _print_report(report: SessionReport) -> None:
    typer.echo(
        f"run {report.run}: {report.stored} stored ({report.without_code} without code), "
        f"{report.already_there} already there, {len(report.failed)} failed"
    )
    if report.run_dir.is_dir():
        typer.echo(f"{report.run_dir}")
