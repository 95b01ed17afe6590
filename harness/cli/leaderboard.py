"""`harness leaderboard`: ranks models by what was evaluated. Reads results/ and the manifests in generated/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.results import (
    DEFAULT_GENERATED_DIR,
    DEFAULT_RESULTS_DIR,
    AsCsv,
    AsJson,
    GeneratedDir,
    OnlyDevice,
    OnlyModel,
    OnlyProblem,
    OnlyRun,
    OnlySuite,
    OnlyWorkload,
    ResultsDir,
    check_one_format,
    explain_no_results,
)

if TYPE_CHECKING:
    from harness.rank.leaderboard import LeaderboardRow
    from harness.store.results import ResultStore


def leaderboard(
    *,
    only_run: OnlyRun = None,
    only_model: OnlyModel = None,
    only_problem: OnlyProblem = None,
    only_suite: OnlySuite = None,
    only_device: OnlyDevice = None,
    only_workload: OnlyWorkload = None,
    k: Annotated[
        list[int] | None,
        typer.Option("-k", min=1, help="Also pass@k, the best of k samples. May be repeated."),
    ] = None,
    own_kernels: Annotated[
        float | None,
        typer.Option(
            "--own-kernels",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Count as correct and fast only what spends at least this share in code of its own, e.g. 0.5.",
        ),
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    results_dir: ResultsDir = DEFAULT_RESULTS_DIR,
    generated_dir: GeneratedDir = DEFAULT_GENERATED_DIR,
) -> None:
    """Rank models: correctness, fast_p and mean speedup, over all problems their runs asked for.

    A problem counts as not solved when a run asked for it and nothing was evaluated. What only the harness or the
    machine is to blame for (harness_error, not_run) is left out, and the column "problems" says so.

    Example: harness leaderboard --suite core --workload full -k 1 -k 5
    """
    from fnmatch import fnmatchcase

    from harness.report.ranking import rank_stored
    from harness.store.results import ResultFilter, ResultStore

    check_one_format(as_csv=as_csv, as_json=as_json)
    where = ResultFilter(
        run=only_run,
        model=only_model,
        problem=only_problem,
        suite=only_suite,
        workload=only_workload,
    )
    # With --problem only the problems that match are in question, not all that the run asked for.
    asked_in = None if only_problem else generated_dir
    with ResultStore.open(results_dir, read_only=True) as store:
        ranked = rank_stored(
            store.rows(where), generated_dir=asked_in, ks=sorted(set(k or ())), min_own_share=own_kernels
        )
        # Chosen only now: samples without any code reached no device, and count on each all the same.
        rows = [row for row in ranked if only_device is None or fnmatchcase(row.group.device, only_device)]
        if as_json or as_csv or as_markdown:
            typer.echo(_format_rows(rows, as_json=as_json, as_csv=as_csv), nl=False)
        else:
            _print_leaderboard(store, rows, own_kernels)


def _format_rows(rows: Sequence[LeaderboardRow], *, as_json: bool, as_csv: bool) -> str:
    from harness.report.csv_files import format_leaderboard
    from harness.report.records import dump_json, leaderboard_record
    from harness.report.tables import render_leaderboard_markdown

    if as_json:
        return dump_json([leaderboard_record(row) for row in rows]) + "\n"
    return format_leaderboard(rows) if as_csv else render_leaderboard_markdown(rows)


def _print_leaderboard(store: ResultStore, rows: Sequence[LeaderboardRow], own_kernels: float | None) -> None:
    from rich.console import Console

    from harness.report.tables import WIDE_TERMINAL, render_leaderboard

    if not rows:
        typer.echo(explain_no_results(store))
        return
    console = Console()
    console.print(render_leaderboard(rows, wide=console.width >= WIDE_TERMINAL))
    if own_kernels is not None:
        left_out = sum(row.not_own for row in rows)
        console.print(
            f"Counted with at least {100 * own_kernels:g}% of their time in code of their own, which their outputs "
            f"need: {left_out} correct candidate{'s' if left_out != 1 else ''} left out.",
            highlight=False,
        )
