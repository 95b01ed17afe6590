"""`harness generate`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.options import JsonOption, Only, ProblemOption, RunOption, SuiteOption
from harness.domain import INCOMPLETE_ANSWER
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions

if TYPE_CHECKING:
    from harness.domain import SampleKey
    from harness.generate.sampler import SessionReport

FAILED_EXIT_CODE = 1
LISTED_FAILURES = 10
INTERRUPTED_EXIT_CODE = 130


def declare_dry_run(help: str) -> Any:
    panel = GenerateOptions.title
    return typer.Option("--dry-run", envvar="HARNESS_DRY_RUN", show_envvar=False, help=help, rich_help_panel=panel)


def generate(
    *,
    suite: SuiteOption = "core",
    problem: ProblemOption = None,
    run: RunOption = None,
    dry_run: Annotated[bool, declare_dry_run("Print the prompts without sending them.")] = False,
    options: GenerateOptions,
    evaluation: Annotated[EvaluateOptions, Only("dtype")],
    json_output: JsonOption = False,
) -> None:
    """Ask a model for kernels and store its answers.

    Interrupt it at any time; the same command resumes.

    Example: harness generate --model gpt-5 --problem softmax --samples 4 --prompt tips

    A local server: harness generate --model qwen3 --base-url http://localhost:8000/v1
    """
    from harness.cli.progress import show_completions
    from harness.pipeline.generate import generate_run

    if dry_run:
        _print_prompts(options, as_json=json_output)
        return
    try:
        report = generate_run(options, show_completions)
    except KeyboardInterrupt:
        typer.echo("interrupted: received answers are stored; repeat the command to resume", err=True)
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    print_notes(report)
    if json_output:
        typer.echo(json.dumps(_describe_report(report)))
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


def _print_prompts(options: GenerateOptions, *, as_json: bool) -> None:
    from harness.pipeline.generate import plan_dry_run

    prompts = plan_dry_run(options)[0].prompts
    for prompt in prompts:
        if as_json:
            typer.echo(json.dumps(asdict(prompt)))
            continue
        if len(prompts) > 1:
            typer.echo(f"===== {prompt.problem} =====")
        typer.echo(prompt.text, nl=False)


def _describe_report(report: SessionReport) -> dict[str, Any]:
    return {
        "run": report.run,
        "folder": str(report.run_dir),
        "planned": report.planned,
        "already_there": report.already_there,
        "stored": report.stored,
        "without_code": report.without_code,
        **{check: len(notes) for check, notes in _group_incomplete(report).items()},
        "unrecorded": [f"{key.problem}/{key.sample}" for key in report.unrecorded],
        "failed": [
            {"problem": failure.key.problem, "sample": failure.key.sample, "message": failure.message}
            for failure in report.failed
        ],
    }


def _group_incomplete(report: SessionReport) -> dict[str, list[tuple[SampleKey, str]]]:
    """Return (sample, message) by check."""
    found = [(key, note) for key, notes in report.incomplete.items() for note in notes]
    return {check: [(key, note.message) for key, note in found if note.check == check] for check in INCOMPLETE_ANSWER}


def print_notes(report: SessionReport) -> None:
    for check, notes in _group_incomplete(report).items():
        if notes:
            key, message = notes[0]
            typer.echo(
                f"{check}: {len(notes)} of {report.stored} answers; {key.problem}/{key.sample}: {message}", err=True
            )
    if report.unrecorded:
        names = [f"{key.problem}/{key.sample}" for key in report.unrecorded]
        shown = ", ".join(names[:LISTED_FAILURES]) + (", ..." if len(names) > LISTED_FAILURES else "")
        typer.echo(f"skipped, not in the recording: {shown}", err=True)
    for failure in report.failed[:LISTED_FAILURES]:
        typer.echo(f"failed: {failure.key.problem}/{failure.key.sample}: {failure.message}", err=True)
    if len(report.failed) > LISTED_FAILURES:
        typer.echo(f"... and {len(report.failed) - LISTED_FAILURES} more failed", err=True)
