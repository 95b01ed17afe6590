"""`harness run`."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.generate import declare_dry_run, print_notes
from harness.cli.improve import print_search
from harness.cli.options import JsonOption, ProblemOption, RunOption, SuiteOption, Without
from harness.domain import HarnessError
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.search.strategy import ONE_TURN, SearchOptions

if TYPE_CHECKING:
    from rich.table import Table

    from harness.pipeline.dry_run import RunEstimate

COLUMNS = 80


def run(
    *,
    suite: SuiteOption = "core",
    problem: ProblemOption = None,
    run: RunOption = None,
    dry_run: Annotated[bool, declare_dry_run("Print requests, tokens, cost and minutes; send nothing.")] = False,
    asked: GenerateOptions,
    search: SearchOptions = ONE_TURN,
    options: Annotated[EvaluateOptions, Without("executor", "address", "chip", "gpu")],
    json_output: JsonOption = False,
) -> None:
    """Generate candidates, evaluate them, and print the leaderboard.

    Interrupt it at any time; the same command resumes.

    Example: harness run --suite core --model gpt-5 --samples 4

    Errors and times fed back: harness run --model gpt-5 --turns 4

    What it would cost: harness run --model gpt-5 --price gpt-5=1.25/10 --dry-run

    Without a model or a key: harness run --provider recorded --language cpp --workload small
    """
    from harness.cli.evaluate import print_json, print_paths, print_report
    from harness.cli.leaderboard import print_leaderboard
    from harness.cli.progress import show_search
    from harness.pipeline.improve import improve, run_once

    if dry_run:
        _print_estimate(asked, options, search, as_json=json_output)
        return
    is_search = search.turns > 1
    report = improve(asked, options, search, show_search) if is_search else run_once(asked, options, show_search)
    print_notes(report.asked)
    if not report.asked.stored + report.asked.already_there and not is_search:
        raise HarnessError("no sample was generated: nothing to evaluate")
    if is_search:
        print_search(report, as_json=json_output)
    elif json_output:
        print_json(report.evaluated.all)
    else:
        print_report(report.evaluated, options)
    if not json_output:
        typer.echo()
        if report.ranking:
            print_leaderboard(report.ranking)
        print_paths(options)
    if report.asked.failed:
        raise typer.Exit(1)


def _print_estimate(asked: GenerateOptions, options: EvaluateOptions, search: SearchOptions, *, as_json: bool) -> None:
    from harness.cli.options import print_records, print_rich
    from harness.pipeline.dry_run import estimate_run

    estimate = estimate_run(asked, options, search)
    if as_json:
        print_records({**asdict(estimate), "total": asdict(estimate.total)})
        return
    typer.echo(f"run {estimate.run}{' (new)' if estimate.is_new else ''}")
    print_rich(_tabulate(estimate))
    for note in estimate.notes:
        typer.echo(textwrap.fill(note, COLUMNS, subsequent_indent="  ", break_on_hyphens=False))
    typer.echo("Nothing was sent. harness generate --dry-run prints the prompts.")


def _tabulate(estimate: RunEstimate) -> Table:
    from harness.report.terminal.tables import make_table, style_text
    from harness.report.values import format_fixed

    table = make_table(
        "problem", ">stored", ">evaluated", ">requests", ">prompt\ntokens", ">answer\ntokens", ">US$", ">minutes",
        least=5,
    )  # fmt: skip
    for one in (*estimate.problems, estimate.total):
        counts = (one.stored, one.evaluated, one.requests, one.prompt_tokens, one.answer_tokens)
        cells = ["?" if count is None else f"{count:,}" for count in counts]
        cells.append("?" if one.usd is None else format_fixed(one.usd, 4))
        cells.append("?" if one.minutes is None else format_fixed(one.minutes, 1))
        table.add_row(style_text(one.problem), *cells, end_section=one is estimate.problems[-1])
    return table
