"""`harness runs`: lists runs, annotates and removes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import GroupedCommand, Only, complete_run, expand_panels, print_records, print_rich
from harness.cli.results import AsJson, StoredPanel
from harness.domain import FILE_RUN
from harness.report.values import count

if TYPE_CHECKING:
    from rich.table import Table

    from harness.pipeline.listings import StoredRun

runs_app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@runs_app.callback(invoke_without_command=True)
def show_runs(context: typer.Context) -> None:
    """List runs, annotate or remove one."""
    if context.invoked_subcommand is None:
        listing = context.command.commands["list"]  # type: ignore[attr-defined]
        with listing.make_context("list", [], parent=context) as inner:
            listing.invoke(inner)


@runs_app.command("list", cls=GroupedCommand)
@expand_panels
def list_runs(
    *,
    tag: Annotated[str | None, typer.Option(metavar="WORD", help="Only runs with this tag.")] = None,
    as_json: AsJson = False,
    folders: StoredPanel,
) -> None:
    """List runs by date, with counts, notes and tags.

    The run `file` has the programs that were evaluated as files.

    Example: harness runs list --tag final
    """
    from harness.pipeline.listings import list_stored_runs

    stored = list_stored_runs(folders.generated_dir, folders.results_dir)
    runs = [run for run in stored if tag is None or tag in run.tags]
    if as_json:
        print_records(*map(asdict, runs))
    elif runs:
        print_rich(_render_runs(runs))
        _print_notes(runs)
    elif stored:
        known = sorted({one for run in stored for one in run.tags})
        typer.echo(f"no run has the tag {tag!r}; tags: {', '.join(known) or 'none'}")
    else:
        typer.echo(f"no runs in {folders.generated_dir} and {folders.results_dir}")


@runs_app.command("note", cls=GroupedCommand)
@expand_panels
def annotate(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Its exact name.", autocompletion=complete_run)],
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The new note; '' removes it.", show_default=False)
    ] = None,
    *,
    tag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Add a tag. Repeatable.")] = None,
    untag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Remove a tag. Repeatable.")] = None,
    folders: Annotated[StoredPanel, Only("generated_dir")],
) -> None:
    """Give a run a note and tags, which `harness runs` shows.

    Example: harness runs note my-run "before the new prompt" --tag baseline
    """
    from harness.store.run_files import RunNotes, read_notes, write_notes
    from harness.store.runs import find_run

    run_dir = find_run(folders.generated_dir, name)
    notes = read_notes(run_dir)
    tags = dict.fromkeys((*notes.tags, *(tag or ())))
    notes = RunNotes(
        note=notes.note if text is None else text, tags=tuple(one for one in tags if one not in (untag or ()))
    )
    write_notes(run_dir, notes)
    typer.echo(f"{name}: {notes}" if str(notes) else f"{name} has no note and no tags")


@runs_app.command("rm", cls=GroupedCommand)
@expand_panels
def remove(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Its exact name.", autocompletion=complete_run)],
    *,
    agreed: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    folders: StoredPanel,
) -> None:
    """Remove a run's prompts, answers, programs and evaluations, for good.

    It asks first. The folders of other runs, and their evaluations, stay.

    Example: harness runs rm my-run
    """
    from harness.pipeline.listings import find_stored_run, remove_stored_run

    run = find_stored_run(name, folders.generated_dir, folders.results_dir)
    content = f"{count(run.answers, 'answer')} and {count(run.evaluations, 'evaluation')} of run {name}"
    if not agreed:
        typer.confirm(f"Remove {content}?", abort=True)
    remove_stored_run(run, folders.generated_dir, folders.results_dir)
    typer.echo(f"removed {content}")


def _render_runs(runs: Sequence[StoredRun]) -> Table:
    from harness.report.terminal.tables import make_table, style_text

    table = make_table("run\nmodel; suite, language", "=date", ">problems", ">answers", ">evaluated", ">correct")
    for run in runs:
        about = style_text(f"\n{_describe_model(run)}; {run.suite}, {run.language}", "dim")
        answers = "-" if run.name == FILE_RUN else f"{run.answers:,}"
        counts = (f"{run.problems:,}", answers, f"{run.evaluations:,}", f"{run.correct:,}")
        name = style_text(run.name).append_text(about)
        table.add_row(name, *map(style_text, (run.created_at[:10], *counts)))
    return table


def _print_notes(runs: Sequence[StoredRun]) -> None:
    from harness.report.terminal.tables import style_text
    from harness.store.run_files import RunNotes

    for run in runs:
        if notes := str(RunNotes(note=run.note, tags=run.tags)):
            print_rich(style_text(f"{run.name}: {notes}"))


def _describe_model(run: StoredRun) -> str:
    return run.error or ("programs given as files" if run.name == FILE_RUN else ", ".join(run.models))
