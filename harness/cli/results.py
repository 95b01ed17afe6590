"""`harness results`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.analysis.metrics import combine_clocks, geometric_mean
from harness.cli.options import Only, Panel, complete_baseline, print_records, print_rich
from harness.domain import Outcome, UsageError
from harness.domain.options import option
from harness.report.terminal.tables import add_column, format_cell, make_table
from harness.report.values import format_rate
from harness.store.queries import ResultFilter

if TYPE_CHECKING:
    from rich.table import Table

    from harness.store.columns import ResultRow
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
    from harness.store.columns import COLUMNS
    from harness.store.queries import check_columns

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
    from harness.store.columns import COLUMNS

    typer.echo(format_evaluations(rows, columns or tuple(COLUMNS)), nl=False)


def _write_parquet(rows: Sequence[ResultRow], columns: Sequence[str] | None, path: Path) -> None:
    from harness.report.export.table_files import write_parquet
    from harness.store.columns import COLUMNS

    write_parquet(rows, columns or tuple(COLUMNS), path)
    typer.echo(f"{len(rows):,} evaluation{'s' if len(rows) != 1 else ''} written to {path}", err=True)


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
    from rich.console import Console

    from harness.analysis.metrics import count_clocks, describe_clocks
    from harness.report.terminal.tables import choose_columns, measure_evaluations, render_evaluations

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
    """Map combinations of values, in order of occurrence, to SUMMARY_COLUMNS. Tuples are (outcome, speedup or None,
    clock, *values).
    """
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
