"""`harness leaderboard` and `harness diff`: compare models, runs, prompts and versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from harness.analysis.leaderboard import LeaderboardRow, describe_unequal_problems
from harness.analysis.ranking import is_from_file, rank_stored
from harness.cli.options import Only, OnlyProblem, Without, print_records, write_text
from harness.cli.results import Against, AsCsv, AsJson, StoredPanel, check_one_format, make_sentence
from harness.report.terminal.tables import WIDE_TERMINAL, render_leaderboard, render_leaderboard_markdown
from harness.report.values import count
from harness.store.queries import ResultFilter

if TYPE_CHECKING:
    from harness.analysis.side_material import SideBySide
    from harness.store.results import ResultStore

PAGE_COLUMNS = 180
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>harness diff</title>
<style>{stylesheet} body {{ color: {foreground}; background: {background}; }}</style></head>
<body><pre>{code}</pre></body></html>
"""


def leaderboard(
    *,
    matching: Annotated[ResultFilter, Without("only_outcome", "own_kernels", "where")],
    k: Annotated[
        list[int] | None, typer.Option("-k", min=1, help="Also pass@k, the best of k distinct programs. Repeatable.")
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
    common: Annotated[
        bool, typer.Option("--common", help="Count only the problems that all models of a table were asked.")
    ] = False,
    against: Against = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    folders: StoredPanel,
) -> None:
    """Rank models: correctness, fast_p and mean speedup, over all problems that their runs requested.

    Requested problems without an evaluation count as not solved. problem_error, harness_error and not_run are left out,
    as the column "problems" shows.

    Example: harness leaderboard --suite core --workload full -k 1 -k 5
    """
    from harness.store.results import ResultStore

    check_one_format(as_csv=as_csv, as_json=as_json)
    # By device last: samples without code reached no device, but count on each.
    where = replace(matching, device=None)
    # With --problem only matching problems count, not all that the run requested.
    asked_in = None if matching.problem else folders.generated_dir
    with ResultStore.open_against(folders.results_dir, against) as store:
        ranked = rank_stored(
            store.rows(where),
            generated_dir=asked_in,
            ks=sorted(set(k or ())),
            min_own_share=own_kernels,
            programs=store.programs() if k else None,
            common=common,
        )
        kind = "*" if matching.device is None else matching.device.partition(":")[0]
        rows = [row for row in ranked if fnmatchcase(row.group.device, kind)]
        if as_json or as_csv or as_markdown:
            typer.echo(_format_rows(rows, as_json=as_json, as_csv=as_csv), nl=False)
            _note_unequal_problems(rows)
        elif rows:
            print_leaderboard(rows, own_kernels)
        if not rows:
            reason = _explain_no_row(store, matching, common=common)
            typer.echo(make_sentence(reason), err=as_json or as_csv or as_markdown)


def _explain_no_row(store: ResultStore, where: ResultFilter, *, common: bool) -> str:
    from harness.store.results import explain_no_match

    matching = list(store.rows(replace(where, device=None)))
    if matching and all(map(is_from_file, matching)):
        return "no model to rank: only programs that were given as files were evaluated; `harness results` lists them"
    if matching and common:
        return "no problem is common to all models of a table; choose models or runs with --model or --run"
    return explain_no_match(store, where)


def _note_unequal_problems(rows: Sequence[LeaderboardRow]) -> None:
    """Print to stderr for formats without notes."""
    for section in dict.fromkeys(row.group.section for row in rows):
        note = describe_unequal_problems([row for row in rows if row.group.section == section])
        if note:
            typer.echo(f"{', '.join(filter(None, section))}: {note}", err=True)


def _format_rows(rows: Sequence[LeaderboardRow], *, as_json: bool, as_csv: bool) -> str:
    from harness.report.export.json_records import dump_json, leaderboard_record
    from harness.report.export.table_files import format_leaderboard

    if as_json:
        return dump_json(*(leaderboard_record(row) for row in rows))
    return format_leaderboard(rows) if as_csv else render_leaderboard_markdown(rows)


def print_leaderboard(rows: Sequence[LeaderboardRow], own_kernels: float | None = None) -> None:
    console = Console()
    console.print(render_leaderboard(rows, wide=console.width >= WIDE_TERMINAL))
    if own_kernels is not None:
        left_out = sum(row.not_own for row in rows)
        console.print(
            f"Counted with at least {100 * own_kernels:g}% of their time in custom kernels that their outputs "
            f"need: {count(left_out, 'correct candidate')} left out.",
            highlight=False,
        )


def diff(
    before: Annotated[
        str,
        typer.Argument(metavar="BEFORE", help="A run, a model, a prompt or a version of harness.", show_default=False),
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Another one of the same kind.", show_default=False)],
    *,
    by: Annotated[
        Literal["run", "model", "prompt", "harness"] | None,
        typer.Option("--by", help="The kind of both names, if ambiguous.", show_default=False),
    ] = None,
    only_problem: OnlyProblem = None,
    where: Annotated[ResultFilter, Only("only_suite", "only_device", "only_workload")],
    code: Annotated[bool, typer.Option("--code", help="Also show the programs' differences.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the comparison as one offline page.")] = None,
    as_json: AsJson = False,
    folders: StoredPanel,
) -> None:
    """Compare two runs, models, prompts or versions of harness over the same problems.

    Lists changed outcomes first, then paired tests of speed with a controlled false discovery rate, then errors, cost,
    prompts and code. Devices, chips, workloads and baselines are never mixed.

    Example: harness diff run-a run-b --html diff.html
    """
    from harness.analysis.side_material import compare_sides
    from harness.store.results import ResultStore

    where = replace(where, problem=only_problem)
    with ResultStore.open(folders.results_dir, read_only=True) as store:
        sides = compare_sides(store, before, after, kind=by, where=where, generated_dir=folders.generated_dir)
    from harness.report.terminal.diff import render_comparison

    if html is not None:
        write_text(html, format_page(sides))
    if as_json:
        from harness.report.export.json_records import comparison_record

        print_records(comparison_record(sides))
        return

    console = Console()
    console.print(render_comparison(sides, code=code, width=console.width))
    if html is not None:
        typer.echo(str(html))


def format_page(sides: SideBySide) -> str:
    """Return a page that has all, and runs and loads nothing."""
    from harness.report.terminal.diff import WHOLE, render_comparison

    console = Console(record=True, file=StringIO(), width=PAGE_COLUMNS, force_jupyter=False)
    console.print(render_comparison(sides, code=True, width=PAGE_COLUMNS, extent=WHOLE))
    return console.export_html(code_format=PAGE)
