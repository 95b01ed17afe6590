"""`harness leaderboard`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.panels import Without
from harness.cli.results import AsCsv, AsJson, FilterPanel, StoredPanel, check_one_format, explain_no_results

if TYPE_CHECKING:
    from harness.analysis.leaderboard import LeaderboardRow
    from harness.store.results import ResultFilter, ResultStore


def leaderboard(
    *,
    filters: Annotated[FilterPanel, Without("only_outcome", "own_kernels", "where")],
    k: Annotated[
        list[int] | None,
        typer.Option("-k", min=1, help="Also pass@k, the best of k distinct programs. Repeatable."),
    ] = None,
    own_kernels: Annotated[
        float | None,
        typer.Option(
            "--own-kernels",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Count only candidates with at least this share of their time in custom kernels, e.g. 0.5.",
        ),
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    folders: StoredPanel,
) -> None:
    """Rank models: correctness, fast_p and mean speedup, over all problems that their runs requested.

    Requested problems without an evaluation count as not solved. harness_error and not_run are left out, as the column
    "problems" shows.

    Example: harness leaderboard --suite core --workload full -k 1 -k 5
    """
    from fnmatch import fnmatchcase

    from harness.analysis.ranking import rank_stored
    from harness.store.results import ResultStore

    check_one_format(as_csv=as_csv, as_json=as_json)
    # By device last: samples without code reached no device, but count on each.
    where = replace(filters, only_device=None).make_filter()
    # With --problem only matching problems count, not all that the run requested.
    asked_in = None if filters.only_problem else folders.generated_dir
    with ResultStore.open(folders.results_dir, read_only=True) as store:
        ranked = rank_stored(
            store.rows(where),
            generated_dir=asked_in,
            ks=sorted(set(k or ())),
            min_own_share=own_kernels,
            programs=store.programs() if k else None,
        )
        kind = "*" if filters.only_device is None else filters.only_device.partition(":")[0]
        rows = [row for row in ranked if fnmatchcase(row.group.device, kind)]
        unmatched = "" if rows or not store.count() else _explain_no_match(store, where, filters.only_device)
        if as_json or as_csv or as_markdown:
            typer.echo(_format_rows(rows, as_json=as_json, as_csv=as_csv), nl=False)
        elif rows or not unmatched:
            _print_leaderboard(store, rows, own_kernels)
    if unmatched:
        typer.echo(f"harness: {unmatched}", err=True)
        raise typer.Exit(1)


def _explain_no_match(store: ResultStore, where: ResultFilter, device: str | None) -> str:
    """The first filter without a match; "" without filters."""
    from fnmatch import fnmatchcase

    named = {"run": where.run, "model": where.model, "problem": where.problem, "suite": where.suite}
    named |= {"workload": where.workload, "device": device}
    given = [(column, pattern) for column, pattern in named.items() if pattern is not None]
    for column, pattern in given:
        known = sorted({str(value) for (value,) in store.values((column,))})
        if not any(fnmatchcase(value, pattern) for value in known):
            return f"no {column} {pattern!r} in {store.path}; evaluated were {', '.join(known[:20])}"
    return f"no model to rank in {store.path} matches all filters; remove one" if given else ""


def _format_rows(rows: Sequence[LeaderboardRow], *, as_json: bool, as_csv: bool) -> str:
    from harness.report.export.csv_files import format_leaderboard
    from harness.report.export.json_records import dump_json, leaderboard_record
    from harness.report.terminal.tables import render_leaderboard_markdown

    if as_json:
        return dump_json(*(leaderboard_record(row) for row in rows))
    return format_leaderboard(rows) if as_csv else render_leaderboard_markdown(rows)


def _print_leaderboard(store: ResultStore, rows: Sequence[LeaderboardRow], own_kernels: float | None) -> None:
    from rich.console import Console

    from harness.report.terminal.tables import WIDE_TERMINAL, render_leaderboard

    if not rows:
        single = (
            "No model to rank: only candidates that were given as files were evaluated; `harness results` lists them."
        )
        typer.echo(single if store.count() else explain_no_results(store))
        return
    console = Console()
    console.print(render_leaderboard(rows, wide=console.width >= WIDE_TERMINAL))
    if own_kernels is not None:
        left_out = sum(row.not_own for row in rows)
        console.print(
            f"Counted with at least {100 * own_kernels:g}% of their time in custom kernels that their outputs "
            f"need: {left_out} correct candidate{'s' if left_out != 1 else ''} left out.",
            highlight=False,
        )
