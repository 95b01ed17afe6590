"""`harness run`."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.generate import DryRunOption
from harness.cli.options import JsonOption, ProblemOption, RunOption, SuiteOption
from harness.cli.panels import Without
from harness.domain import HarnessError
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.search.options import SearchOptions

ONE_TURN = SearchOptions(turns=1)


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
    from harness.cli.evaluate import print_json, print_leaderboard, print_report
    from harness.cli.improve import print_search
    from harness.pipeline.evaluate import check_plan, evaluate_tasks, sample_tasks
    from harness.pipeline.generate import generate_run, print_dry_run, print_notes
    from harness.pipeline.improve import improve

    if dry_run:
        print_dry_run(asked, as_json=json_output)
        return
    if search.turns > 1:
        print_search(improve(asked, options, search), options, as_json=json_output, ranked=True)
        return
    report = generate_run(asked, check=lambda plan: check_plan(plan, options))
    print_notes(report)
    if not report.stored + report.already_there:
        raise HarnessError("no sample was generated: nothing to evaluate")
    evaluated = evaluate_tasks(sample_tasks([report.run], options), options)
    if json_output:
        print_json(evaluated, options)
        return
    print_report(evaluated, options)
    print_leaderboard(options)
    if report.failed:
        raise typer.Exit(1)
