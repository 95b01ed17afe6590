"""Generates one run for a command."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

import harness
from harness.domain import INCOMPLETE_ANSWER, SampleKey, UsageError
from harness.generate.options import GenerateOptions
from harness.generate.planning import GenerationSettings, find_problems, make_plan, render_prompts
from harness.generate.providers.base import Provider, RecordedProvider, name_recorded_model
from harness.generate.sampler import DrawOutcome, Plan, SessionReport, draw_samples, start_report
from harness.pipeline.data_folders import find_folder, find_suite_folder
from harness.problems.apart import describe_inputs
from harness.store.runs import discard_empty_run, hold_run, write_manifest, write_reference

_LISTED_FAILURES = 10


def check_files(plan: Plan) -> None:
    """Raises ProblemError for files that do not load. For suites there is `harness problems check`."""
    for problem in plan.problems:
        if plan.manifest.find_file(problem.name):
            describe_inputs(problem, "full")


def generate_run(options: GenerateOptions, check: Callable[[Plan], None] = check_files) -> SessionReport:
    """`check` rejects a plan before any request. Raises HarnessError and KeyboardInterrupt; stored samples stay."""
    plan, open_provider = prepare_run(options, check)
    with open_run(plan):
        return asyncio.run(_draw_with_progress(plan, open_provider, options.concurrency))


def prepare_run(
    options: GenerateOptions, check: Callable[[Plan], None] = check_files
) -> tuple[Plan, Callable[[], Provider]]:
    """The checked plan, and what opens its provider. Writes nothing. Raises HarnessError."""
    recording = _find_recording(options)
    settings = _make_settings(options, recording)
    if recording is not None:
        replay = RecordedProvider(recording, options.language)
        plan = _plan(settings)
        kept = _choose_recorded(plan, replay)
        if not options.problems:  # problems given by name stay, and are reported as not recorded
            plan = _plan(replace(settings, options=replace(settings.options, problems=kept)))
        check(plan)
        return plan, lambda: replay

    from harness.generate.providers.openai_compatible import open_endpoint, read_endpoint_settings

    endpoint = read_endpoint_settings(
        os.environ,
        base_url=options.base_url,
        concurrency=options.concurrency,
        timeout_s=options.timeout_s,
        max_wait_s=options.max_wait_s,
        token_limit_name=options.token_limit_name,
    )
    plan = _plan(settings)
    check(plan)
    return plan, lambda: open_endpoint(endpoint)


def _plan(settings: GenerationSettings) -> Plan:
    return make_plan(settings, now=read_clock(), harness_version=harness.__version__)


def _choose_recorded(plan: Plan, replay: RecordedProvider) -> tuple[str, ...]:
    """Raises UsageError if nothing is recorded."""
    keys = plan.list_keys()
    recorded = {key.problem for key in keys if replay.can_answer(key)}
    if not recorded:
        raise UsageError(
            f"{replay.folder} has none of the {len(keys)} requested samples, such as "
            f"{keys[0].problem}/{keys[0].sample}: choose other problems, another --language or another --recording"
        )
    return tuple(name for name in plan.manifest.problems if name in recorded)


@contextmanager
def open_run(plan: Plan) -> Iterator[None]:
    """Locks the run, writes its manifest and references; a run that stays empty is removed."""
    with hold_run(plan.run_dir):
        try:
            manifest = write_manifest(plan.run_dir, plan.manifest)
            for problem in plan.problems:
                if manifest.find_file(problem.name):
                    write_reference(plan.run_dir, problem.name, problem.source)
            yield
        finally:
            discard_empty_run(plan.run_dir)


async def _draw_with_progress(plan: Plan, open_provider: Callable[[], Provider], concurrency: int) -> SessionReport:
    provider = open_provider()
    try:
        report, wanted = start_report(plan, provider)
        with _show_progress(report, len(wanted)) as notify:
            await draw_samples(
                plan, provider, report, wanted, concurrency=concurrency, read_clock=read_clock, notify=notify
            )
        return report
    finally:
        await provider.close()


@contextmanager
def _show_progress(report: SessionReport, wanted: int) -> Iterator[Callable[[SampleKey, DrawOutcome], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    there = f" ({report.already_there} of {report.planned} already there)" if report.already_there else ""
    console.print(f"generating run {report.run}{there}", soft_wrap=True, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=wanted == 0) as progress:
        task = progress.add_task("completions", total=wanted)
        yield lambda key, outcome: progress.advance(task)


def _find_recording(options: GenerateOptions) -> Path | None:
    if options.provider == "openai":
        return None
    if options.recording is not None:
        return options.recording
    return find_folder("recordings", None, option="--recording") / "demo"


def _make_settings(options: GenerateOptions, recording: Path | None) -> GenerationSettings:
    model = options.model or (name_recorded_model(recording, options.language) if recording else None)
    if model is None:
        raise UsageError("no model: name one with --model, or replay stored completions with --provider recorded")
    return GenerationSettings(
        options=options if recording is None else replace(options, base_url=None),
        suite_dir=find_suite_folder(options.suite, options.problems_dir),
        prompts_dir=find_folder("prompts", options.prompts_dir, option="--prompts-dir"),
        model=model,
    )


def read_clock() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def print_dry_run(options: GenerateOptions, *, as_json: bool = False) -> None:
    """Needs neither model, key nor network."""
    settings = _make_settings(replace(options, model=options.model or "none"), None)
    prompts = render_prompts(settings, find_problems(settings))
    if as_json:
        for prompt in prompts:
            typer.echo(json.dumps(asdict(prompt)))
        return
    for prompt in prompts:
        if len(prompts) > 1:
            typer.echo(f"===== {prompt.problem} =====")
        typer.echo(prompt.text, nl=False)


def describe_report(report: SessionReport) -> dict[str, Any]:
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
    """(sample, message) of each check."""
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
        shown = ", ".join(names[:_LISTED_FAILURES]) + (", ..." if len(names) > _LISTED_FAILURES else "")
        typer.echo(f"skipped, not in the recording: {shown}", err=True)
    for failure in report.failed[:_LISTED_FAILURES]:
        typer.echo(f"failed: {failure.key.problem}/{failure.key.sample}: {failure.message}", err=True)
    if len(report.failed) > _LISTED_FAILURES:
        typer.echo(f"... and {len(report.failed) - _LISTED_FAILURES} more failed", err=True)
