"""`harness results` and `harness runs`: list stored evaluations and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from harness.analysis.metrics import combine_clocks, count_clocks, describe_clocks, geometric_mean
from harness.cli.options import (
    GroupedCommand,
    Only,
    Panel,
    complete_baseline,
    complete_run,
    expand_panels,
    list_by_default,
    print_records,
    print_rich,
)
from harness.domain import FILE_RUN, Outcome, UsageError
from harness.domain.options import option
from harness.report.terminal.tables import (
    add_column,
    choose_columns,
    format_cell,
    make_table,
    measure_evaluations,
    render_evaluations,
    style_text,
)
from harness.report.values import count, format_rate
from harness.store.columns import COLUMNS, ResultRow
from harness.store.queries import ResultFilter, check_columns
from harness.store.run_files import RunNotes, read_notes, write_notes
from harness.store.runs import find_run

if TYPE_CHECKING:
    from harness.pipeline.listings import StoredRun
    from harness.store.results import ResultStore


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPanel(Panel):
    results_dir: Path = option(Path("results"), "Folder with harness.db.")
    generated_dir: Path = option(Path("generated"), "Folder of runs with their manifests.")


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one record per line.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]

Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="BASELINE",
        autocompletion=complete_baseline,
        help="Speedups over this one of the measured baselines. [default: the first of each]",
        show_default=False,
    ),
]

TERMINAL_LIMIT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPanel(Panel):
    sort: str | None = option(None, "Column to sort by; -COLUMN for the largest first. [default: id, the newest ones]")
    limit: int | None = option(
        None,
        f"Maximum number; 0 for all. [default: {TERMINAL_LIMIT}, all with --csv or --json]",
        min=0,
        show_default=False,
        show_envvar=True,
    )
    columns: str | None = option(
        None, "Comma-separated columns of the table, CSV, JSON or Parquet, or 'all'. The table cuts long texts."
    )
    group: str | None = option(None, "Count evaluations by these comma-separated columns, e.g. model,outcome.")
    history: bool = option(False, "Also superseded evaluations.", "--history")


def results(
    *,
    matching: ResultFilter,
    view: ViewPanel,
    against: Against = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Parquet file. Needs pyarrow.", show_default=False)
    ] = None,
    folders: Annotated[StoredPanel, Only("results_dir")],
) -> None:
    """List evaluations: filter, sort, group, choose columns.

    Example: harness results --where 'outcome == "correct" and speedup > 1.2' --sort -speedup

    By model: harness results --device cpu --group model,outcome
    """
    from harness.store.results import ResultStore

    check_one_format(as_csv=as_csv, as_json=as_json, parquet=parquet)
    chosen, grouping = _choose_columns(view.columns), _choose_columns(view.group)
    with ResultStore.open_against(folders.results_dir, against) as store:
        usual = 0 if as_csv or as_json or parquet else TERMINAL_LIMIT
        limit = usual if view.limit is None else view.limit
        if grouping:
            if parquet or view.columns:
                raise UsageError("--group prints counts: it excludes --columns and --parquet")
            values = list(store.values(("outcome", "speedup", "clock", *grouping), matching, history=view.history))
            if not values:
                _say_no_match(store, matching, err=as_csv or as_json)
            _print_groups(values, grouping, as_csv=as_csv, as_json=as_json)
            return
        rows = list(store.rows(matching, sort=view.sort or "-id", limit=limit or None, history=view.history))
        if view.sort is None:
            rows.reverse()
        if not rows:
            _say_no_match(store, matching, err=as_csv or as_json or parquet is not None)
        if as_json:
            _print_json(store, rows, chosen)
        elif as_csv:
            _print_csv(rows, chosen)
        elif parquet:
            _write_parquet(rows, chosen, parquet)
        elif rows:
            _print_table(rows, chosen)
            matches = store.count(matching, history=view.history)
            typer.echo(_state_count(len(rows), matches, "Newest" if view.sort is None else "First"))


def check_one_format(*, as_csv: bool, as_json: bool, parquet: Path | None = None) -> None:
    """Raises UsageError."""
    given = [name for name, wanted in (("--csv", as_csv), ("--json", as_json), ("--parquet", parquet)) if wanted]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other: choose one")


def _say_no_match(store: ResultStore, where: ResultFilter, *, err: bool) -> None:
    from harness.store.results import explain_no_match

    typer.echo(make_sentence(explain_no_match(store, where)), err=err)


def make_sentence(reason: str) -> str:
    return f"{reason[0].upper()}{reason[1:]}{'' if reason.endswith('?') else '.'}"


def _choose_columns(columns: str | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if columns == "all":
        return tuple(COLUMNS)
    chosen = tuple(name.strip() for name in columns.split(","))
    check_columns(chosen)
    return chosen


def _print_json(store: ResultStore, rows: Sequence[ResultRow], columns: Sequence[str] | None) -> None:
    """`columns` None prints whole evaluations."""
    from harness.report.export.json_records import evaluation_record, select_fields

    if columns is not None:
        print_records(*(select_fields(row, columns) for row in rows))
        return
    found = (store.get(row.id) for row in rows)
    print_records(*(evaluation_record(stored) for stored in found if stored is not None))


def _print_csv(rows: Sequence[ResultRow], columns: Sequence[str] | None) -> None:
    from harness.report.export.table_files import format_evaluations

    typer.echo(format_evaluations(rows, columns or tuple(COLUMNS)), nl=False)


def _write_parquet(rows: Sequence[ResultRow], columns: Sequence[str] | None, path: Path) -> None:
    from harness.report.export.table_files import write_parquet

    write_parquet(rows, columns or tuple(COLUMNS), path)
    typer.echo(f"{count(len(rows), 'evaluation')} written to {path}", err=True)


def _print_groups(values: Iterable[tuple[Any, ...]], columns: Sequence[str], *, as_csv: bool, as_json: bool) -> None:
    groups = count_groups(values)
    records = [dict(zip(columns, shared, strict=True)) | dict(counts) for shared, counts in groups.items()]
    if as_json:
        print_records(*records)
    elif as_csv:
        from harness.report.export.table_files import format_records

        typer.echo(format_records(records, (*columns, *SUMMARY_COLUMNS)), nl=False)
    elif groups:
        print_rich(render_groups(groups, columns))


def _print_table(rows: Sequence[ResultRow], columns: Sequence[str] | None) -> None:
    console = Console()
    table = render_evaluations(rows, columns or choose_columns(console.width, rows))
    if columns:  # keep named columns even beyond the terminal's width
        console.width = max(console.width, measure_evaluations(rows, columns))
    console.print(table)
    if note := describe_clocks(count_clocks(rows)):
        typer.echo(f"{note}.")


def _state_count(shown: int, matches: int, which: str) -> str:
    if matches > shown:
        return f"{which} {shown} of {matches} evaluations; --limit 0 shows all. `harness show ID` shows one."
    return f"{matches} evaluation{'s' if matches != 1 else ''}. `harness show ID` shows one."


SUMMARY_COLUMNS = ("evaluations", "correct", "correct_share", "timed", "speedup", "speedup_clock")
Groups = Mapping[tuple[Any, ...], Mapping[str, Any]]


def count_groups(values: Iterable[tuple[Any, ...]]) -> Groups:
    """Map combinations of values, in order of occurrence, to SUMMARY_COLUMNS. Tuples: (outcome, speedup, clock, *)."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for outcome, speedup, clock, *shared in values:
        groups.setdefault(tuple(shared), []).append((outcome, speedup, clock or "call"))
    return {shared: _summarise(members) for shared, members in groups.items()}


def _summarise(members: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    correct = sum(outcome == Outcome.CORRECT for outcome, _, _ in members)
    timed = [(speedup, clock) for _, speedup, clock in members if speedup is not None]
    speedup, clock = geometric_mean([one for one, _ in timed]), combine_clocks(clock for _, clock in timed)
    counts = (len(members), correct, correct / len(members), len(timed), speedup, clock)
    return dict(zip(SUMMARY_COLUMNS, counts, strict=True))


def render_groups(groups: Groups, columns: Sequence[str]) -> Table:
    table = make_table()
    for name in columns:
        add_column(table, name)
    for name in ("evaluations", "correct", "share", "timed", "speedup"):
        add_column(table, name, is_number=True, whole=True)
    for shared, counts in groups.items():
        cells = (format_cell(name, value) for name, value in zip(columns, shared, strict=True))
        numbers = [f"{counts[name]:,}" for name in ("evaluations", "correct", "timed")]
        numbers.insert(2, format_rate(counts["correct_share"]))
        table.add_row(*cells, *numbers, format_cell("speedup", counts["speedup"], counts["speedup_clock"]))
    return table


RunName = Annotated[str, typer.Argument(metavar="RUN", help="Its exact name.", autocompletion=complete_run)]

runs_app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@runs_app.callback(invoke_without_command=True)
def show_runs(context: typer.Context) -> None:
    """List runs, annotate or remove one."""
    list_by_default(context)


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
    name: RunName,
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
    name: RunName,
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
    table = make_table("run\nmodel; suite, language", "=date", ">problems", ">answers", ">evaluated", ">correct")
    for run in runs:
        model = run.error or ("programs given as files" if run.name == FILE_RUN else ", ".join(run.models))
        about = style_text(f"\n{model}; {run.suite}, {run.language}", "dim")
        answers = "-" if run.name == FILE_RUN else f"{run.answers:,}"
        counts = (f"{run.problems:,}", answers, f"{run.evaluations:,}", f"{run.correct:,}")
        name = style_text(run.name).append_text(about)
        table.add_row(name, *map(style_text, (run.created_at[:10], *counts)))
    return table


def _print_notes(runs: Sequence[StoredRun]) -> None:
    for run in runs:
        if notes := str(RunNotes(note=run.note, tags=run.tags)):
            print_rich(style_text(f"{run.name}: {notes}"))
