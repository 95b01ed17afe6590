"""`harness generate` asks models, `harness extract` reads answers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from harness.cli.main import INTERRUPTED_EXIT_CODE
from harness.cli.options import JsonOption, Only, ProblemOption, RunOption, SuiteOption, print_records
from harness.cli.progress import show_completions
from harness.domain import INCOMPLETE_ANSWER, Sample, SampleKey, StoreError, UsageError
from harness.domain.files import find_wide_encoding, raising
from harness.domain.options import RunFolders
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.report.terminal.tables import make_table, style_text
from harness.store.runs import find_run, hold_run, list_keys, list_runs, load_sample, locate_run, replace_candidate

if TYPE_CHECKING:
    from harness.generate.extraction.extractor import ExtractionChange
    from harness.generate.sampler import SessionReport

FAILED_EXIT_CODE = 1
LISTED_FAILURES = 10


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
        print_records(_describe_report(report))
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
            print_records(asdict(prompt))
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
        "unrecorded": _name_unrecorded(report),
        "failed": [
            {"problem": failure.key.problem, "sample": failure.key.sample, "message": failure.message}
            for failure in report.failed
        ],
    }


def _name_unrecorded(report: SessionReport) -> list[str]:
    return [f"{key.problem}/{key.sample}" for key in report.unrecorded]


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
        names = _name_unrecorded(report)
        shown = ", ".join(names[:LISTED_FAILURES]) + (", ..." if len(names) > LISTED_FAILURES else "")
        typer.echo(f"skipped, not in the recording: {shown}", err=True)
    for failure in report.failed[:LISTED_FAILURES]:
        typer.echo(f"failed: {failure.key.problem}/{failure.key.sample}: {failure.message}", err=True)
    if len(report.failed) > LISTED_FAILURES:
        typer.echo(f"... and {len(report.failed) - LISTED_FAILURES} more failed", err=True)


NOTHING_FOUND_EXIT_CODE = CHANGED_EXIT_CODE = 1


def extract(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="A raw completion (- reads standard input); with --stored, runs [default: all].",
            metavar="FILE|RUN",
            show_default=False,
        ),
    ] = None,
    *,
    stored: Annotated[bool, typer.Option("--stored", help="Extract stored completions again; list changes.")] = False,
    write: Annotated[bool, typer.Option("--write", help="With --stored: store the new programs.")] = False,
    check: Annotated[bool, typer.Option("--check", help="With --stored: exit with 1 if something changed.")] = False,
    show_diff: Annotated[bool, typer.Option("--diff", help="With --stored: show the programs' differences.")] = False,
    json_output: JsonOption = False,
    paths: Annotated[RunFolders, Only("generated_dir")],
) -> None:
    """Print the program that a raw completion submits, and on stderr the rule that found it.

    Of several programs, stderr names the chosen one and the reason. Exits with 1 when there is none.

    Example: harness extract generated/my-run/softmax/0/completion.md > candidate.py

    With --stored, extract stored completions again and list the samples whose program changes. --write stores the new
    programs for `harness evaluate`.

    Example: harness extract --stored --check
    """
    if stored:
        changes, damaged = _extract_again(names, paths.generated_dir, write, show_diff, json_output)
        if check and (changes or damaged):
            raise typer.Exit(CHANGED_EXIT_CODE)
        return
    if write or check or show_diff:
        raise UsageError("--write, --check and --diff need --stored")
    if names is None or len(names) != 1:
        raise UsageError("name one file with a raw completion, or - for standard input; or add --stored")
    _extract_file(Path(names[0]), json_output=json_output)


def _extract_file(file: Path, *, json_output: bool) -> None:
    from harness.generate.extraction.extractor import find_code
    from harness.generate.extraction.notes import explain_reasoning, list_alternatives, summarise_choice

    with raising(UsageError, f"read {file}"):
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    text = content.decode(find_wide_encoding(content) or "utf-8", "replace")
    found = find_code(text)
    if json_output:
        print_records({"source": found.source, **asdict(found.extraction)} if found else None)
    elif found:
        typer.echo(found.source, nl=False)
    if found is None:
        reason = explain_reasoning(text)
        typer.echo(f"no program with ModelNew in {file}{f': {reason}' if reason else ''}", err=True)
        raise typer.Exit(NOTHING_FOUND_EXIT_CODE)
    typer.echo("\n".join([summarise_choice(found.extraction), *list_alternatives(found.extraction)]), err=True)


def _extract_again(
    runs: Sequence[str] | None, generated_dir: Path, write: bool, show_diff: bool, json_output: bool
) -> tuple[list[ExtractionChange], list[str]]:
    """Return (changes, errors of unreadable samples)."""
    from harness.generate.extraction.extractor import ExtractionChange, reextract

    count, changes, damaged = 0, list[ExtractionChange](), list[str]()
    for run in runs or list_runs(generated_dir):
        samples, broken = _load_run(run, generated_dir)
        count += len(samples)
        damaged += broken
        changes += list(reextract(samples))
    if write:
        _store(changes, generated_dir)
    if json_output:
        records = [
            {"sample": str(change.sample.key), "change": change.kind, "reason": change.reason, "diff": change.diff()}
            for change in changes
        ]
        print_records({"samples": count, "changes": records, "damaged": list(damaged)})
    else:
        _print_table(count, changes, damaged, show_diff=show_diff, written=write)
    return changes, damaged


def _load_run(run: str, generated_dir: Path) -> tuple[list[Sample], list[str]]:
    """Return (samples, errors of unreadable ones)."""
    run_dir = find_run(generated_dir, run)
    samples, damaged = [], []
    for key in list_keys(run_dir):
        try:
            samples.append(load_sample(run_dir, key))
        except StoreError as error:
            damaged.append(str(error))
    return samples, damaged


def _store(changes: Iterable[ExtractionChange], generated_dir: Path) -> None:
    by_run: dict[str, list[ExtractionChange]] = {}
    for change in changes:
        by_run.setdefault(change.sample.key.run, []).append(change)
    for run, changed in by_run.items():
        run_dir = locate_run(generated_dir, run)
        with hold_run(run_dir):
            for change in changed:
                replace_candidate(run_dir, change.sample.key, change.now)


def _print_table(
    count: int, changes: Sequence[ExtractionChange], damaged: Sequence[str], *, show_diff: bool, written: bool
) -> None:
    console = Console()
    if changes:
        table = make_table("=change", "sample", "why")
        for change in changes:
            table.add_row(*map(style_text, (change.kind, str(change.sample.key), change.reason)))
        console.print(table)
    for change in changes if show_diff else ():
        console.print(style_text("\n".join([str(change.sample.key), *change.diff()])))
    for problem in damaged:
        console.print(style_text(problem))
    end = "stored" if written else "not stored (use --write)"
    verdict = f"{len(changes)} of {count} samples changed; {end}" if changes else "no changes"
    console.print(style_text(f"{count} samples: {verdict}." if not changes else f"{verdict}."))
