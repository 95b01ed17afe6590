"""`harness run`."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.generate import DryRunOption, print_dry_run, print_notes
from harness.cli.improve import print_search
from harness.cli.options import JsonOption, ProblemOption, RunOption, SuiteOption
from harness.cli.panels import Without
from harness.domain import HarnessError
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.search.options import ONE_TURN, SearchOptions


def run(
    *,
    suite: SuiteOption = "core",
    problem: ProblemOption = None,
    run: RunOption = None,
    dry_run: DryRunOption = False,
    asked: GenerateOptions,
    search: SearchOptions = ONE_TURN,
    options: Annotated[EvaluateOptions, Without("executor", "address", "chip", "gpu")],
    json_output: JsonOption = False,
) -> None:
    """Generate candidates, evaluate them, and print the leaderboard.

    Interrupt it at any time; the same command resumes.

    Example: harness run --suite core --model gpt-5 --samples 4

    Errors and times fed back: harness run --model gpt-5 --turns 4

    Without a model or a key: harness run --provider recorded --language cpp --workload small
    """
    from harness.cli.evaluate import print_json, print_paths, print_report
    from harness.cli.leaderboard import print_leaderboard
    from harness.cli.progress import show_search
    from harness.pipeline.improve import improve, run_once

    if dry_run:
        print_dry_run(asked, as_json=json_output)
        return
    is_search = search.turns > 1
    report = improve(asked, options, search, show_search) if is_search else run_once(asked, options, show_search)
    print_notes(report.asked)
    if not report.asked.stored + report.asked.already_there and not is_search:
        raise HarnessError("no sample was generated: nothing to evaluate")
    if is_search:
        print_search(report, as_json=json_output)
    elif json_output:
        print_json(report.evaluated)
    else:
        print_report(report.evaluated, options)
    if not json_output:
        typer.echo()
        if report.ranking:
            print_leaderboard(report.ranking)
        print_paths(options)
    if report.asked.failed:
        raise typer.Exit(1)
