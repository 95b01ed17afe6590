"""`harness extract --stored`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import JsonOption, Only
from harness.cli.output import print_records
from harness.domain.options import RunFolders

if TYPE_CHECKING:
    from harness.domain import Sample
    from harness.generate.extraction.stored import ExtractionChange

CHANGED_EXIT_CODE = 1
WriteOption = Annotated[bool, typer.Option("--write", help="With --stored: store the new programs.")]
CheckOption = Annotated[bool, typer.Option("--check", help="With --stored: exit with 1 if something changed.")]
DiffOption = Annotated[bool, typer.Option("--diff", help="With --stored: show the programs' differences.")]


def reextract(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs in generated/. [default: all of them]")] = None,
    *,
    write: WriteOption = False,
    check: CheckOption = False,
    show_diff: DiffOption = False,
    json_output: JsonOption = False,
    paths: Annotated[RunFolders, Only("generated_dir")],
) -> None:
    """The old name of `harness extract --stored`."""
    from harness.generate.extraction.stored import reextract as extract_again
    from harness.store.runs import list_runs

    count, changes, damaged = 0, [], []
    for run in runs or list_runs(paths.generated_dir):
        samples, broken = _load_run(run, paths.generated_dir)
        count += len(samples)
        damaged += broken
        changes += list(extract_again(samples))
    if write:
        _store(changes, paths.generated_dir)
    if json_output:
        _print_json(count, changes, damaged)
    else:
        _print_table(count, changes, damaged, show_diff=show_diff, written=write)
    if check and (changes or damaged):
        raise typer.Exit(CHANGED_EXIT_CODE)


def _load_run(run: str, generated_dir: Path) -> tuple[list[Sample], list[str]]:
    """Return (samples, errors of unreadable ones)."""
    from harness.domain import StoreError
    from harness.store.runs import find_run, list_keys, load_sample

    run_dir = find_run(generated_dir, run)
    samples, damaged = [], []
    for key in list_keys(run_dir):
        try:
            samples.append(load_sample(run_dir, key))
        except StoreError as error:
            damaged.append(str(error))
    return samples, damaged


def _store(changes: Iterable[ExtractionChange], generated_dir: Path) -> None:
    from harness.store.runs import hold_run, locate_run, replace_candidate

    by_run: dict[str, list[ExtractionChange]] = {}
    for change in changes:
        by_run.setdefault(change.sample.key.run, []).append(change)
    for run, changed in by_run.items():
        run_dir = locate_run(generated_dir, run)
        with hold_run(run_dir):
            for change in changed:
                replace_candidate(run_dir, change.sample.key, change.now)


def _print_json(count: int, changes: Sequence[ExtractionChange], damaged: Sequence[str]) -> None:
    records = [
        {"sample": str(change.sample.key), "change": change.kind, "reason": change.reason, "diff": change.diff()}
        for change in changes
    ]
    print_records({"samples": count, "changes": records, "damaged": list(damaged)})


def _print_table(
    count: int, changes: Sequence[ExtractionChange], damaged: Sequence[str], *, show_diff: bool, written: bool
) -> None:
    from rich.console import Console

    from harness.report.terminal.tables import make_table, style_text

    console = Console()
    if changes:
        table = make_table()
        table.add_column("change", no_wrap=True)
        table.add_column("sample", overflow="fold")
        table.add_column("why", overflow="fold")
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
