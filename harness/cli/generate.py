"""`harness generate`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import (
    EvaluationPanel,
    JsonOption,
    ModelPanel,
    PathsPanel,
    ProblemOption,
    RunOption,
    SuiteOption,
    make_generate_options,
)
from harness.cli.panels import Only, option

if TYPE_CHECKING:
    from harness.generate.sampler import SessionReport

FAILED_EXIT_CODE = 1
INTERRUPTED_EXIT_CODE = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawPanel(ModelPanel):
    dry_run: bool = option(False, "Print the prompts without sending them.", "--dry-run")


def generate(
    *,
    suite: SuiteOption = "core",
    problem: ProblemOption = None,
    run: RunOption = None,
    model: DrawPanel,
    evaluation: Annotated[EvaluationPanel, Only("dtype")],
    paths: Annotated[PathsPanel, Only("generated_dir", "problems_dir", "prompts_dir")],
    json_output: JsonOption = False,
) -> None:
    """Ask a model for kernels and store its answers.

    Interrupt it at any time; the same command resumes.

    Example: harness generate --model gpt-5 --problem softmax --samples 4 --prompt tips

    A local server: harness generate --model qwen3 --base-url http://localhost:8000/v1
    """
    from harness.pipeline.generate import describe_report, generate_run, print_dry_run, print_notes

    options = make_generate_options(
        model,
        paths,
        suite=suite,
        problems=problem or (),
        run=run,
        dtype=evaluation.dtype,
        is_evaluated=False,
    )
    if model.dry_run:
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
