"""`harness run`, `harness improve` and `harness regress`: ask and evaluate repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.analysis.change_detection import Change, GateRule, gate
from harness.cli.compare import print_leaderboard
from harness.cli.generate import declare_dry_run, print_notes
from harness.cli.options import (
    JsonOption,
    Only,
    OnlyProblem,
    Panel,
    ProblemOption,
    RunOption,
    SuiteOption,
    Without,
    complete_run,
    print_records,
    print_rich,
    write_text,
)
from harness.cli.progress import show_search, show_steps, wrap
from harness.domain import HarnessError, Language, UsageError
from harness.domain.options import option
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.pipeline.regress import Selection, regress_stored
from harness.report.terminal.regress import (
    changes_record,
    format_junit,
    format_markdown,
    render_changes,
    summarise_changes,
)
from harness.report.terminal.tables import WIDE_TERMINAL, make_table, style_text
from harness.report.values import format_fixed
from harness.search.strategy import ONE_TURN, SearchOptions
from harness.store.queries import ResultFilter

if TYPE_CHECKING:
    from harness.pipeline.chains import SearchReport
    from harness.pipeline.dry_run import RunEstimate


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
    from harness.pipeline.dry_run import estimate_run

    estimate = estimate_run(asked, options, search)
    if as_json:
        print_records({**asdict(estimate), "total": asdict(estimate.total)})
        return
    typer.echo(f"run {estimate.run}{' (new)' if estimate.is_new else ''}")
    print_rich(_tabulate(estimate))
    for note in estimate.notes:
        typer.echo(wrap(note))
    typer.echo("Nothing was sent. harness generate --dry-run prints the prompts.")


def _tabulate(estimate: RunEstimate) -> Table:
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


def improve(
    run_or_file: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help="A run in generated/, or a program of your own.")
    ],
    *,
    problem: Annotated[str | None, typer.Option(help="With FILE: a problem's name, or a reference file.")] = None,
    language: Annotated[Language | None, typer.Option(help="With FILE. [default: detected from the source]")] = None,
    suite: SuiteOption = "core",
    run: RunOption = None,
    asked: Annotated[GenerateOptions, Without("language")],
    search: SearchOptions,
    options: Annotated[EvaluateOptions, Without("executor", "address", "chip", "gpu", "again", "known_solutions")],
    json_output: JsonOption = False,
) -> None:
    """Ask the model again, with errors and times fed back.

    With a run, continue every sample with the model and settings of the run. With a file, write the best verified
    program to FILE.best.py.

    Interrupt it at any time; the same command resumes.

    Example: harness improve my-run --turns 4

    One program: harness improve kernel.py --problem softmax --model gpt-5 --turns 8

    Exit code with FILE: 0 if a correct program was found, else 1.
    """
    from harness.pipeline.chains import explain_failures
    from harness.pipeline.improve import improve_file, improve_run

    if not run_or_file.endswith(".py"):
        if problem is not None or language is not None:
            option = "--problem" if problem is not None else "--language"
            raise UsageError(f"{option} is for a FILE (.py): a run has its own")
        _print_answered(improve_run(run_or_file, asked, options, search, show_search), as_json=json_output)
        return
    if problem is None:
        raise UsageError("improving a file needs --problem NAME (or a reference file's path)")
    report, best = improve_file(Path(run_or_file), asked, options, search, language=language, show=show_search)
    _print_answered(report, as_json=json_output)
    if best is None:
        for line in explain_failures(report):
            typer.echo(line, err=True)
        typer.echo("no correct program was found", err=True)
        raise typer.Exit(1)
    typer.echo(f"{best}", err=json_output)


def _print_answered(report: SearchReport, *, as_json: bool) -> None:
    """Exit with 1 if the endpoint failed."""
    print_search(report, as_json=as_json)
    if report.asked.failed:
        raise typer.Exit(1)


def print_search(report: SearchReport, *, as_json: bool) -> None:
    """One line per sample on stdout, failures on stderr."""
    from harness.pipeline.chains import describe_search, describe_turns

    if as_json:
        print_records(*describe_search(report))
        return
    for one in report.samples:
        typer.echo(describe_turns(one), err=one.failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPanel(Panel):
    update: bool = option(
        False, "Measure each fully, and store the results for later comparisons.", "--update", envvar=None
    )
    extraction: bool = option(True, "Also extract the chosen completions again.", envvar=None)


def regress(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs to re-evaluate. [default: all evaluated ones]", autocompletion=complete_run),
    ] = None,
    *,
    only_problem: OnlyProblem = None,
    selection: Selection,
    rule: GateRule,
    comparison: ComparisonPanel,
    options: Annotated[
        EvaluateOptions,
        Only(
            "time",
            "gpu",
            "allow_load",
            "call_timeout",
            "first_call_timeout",
            "load_timeout",
            "reference_timeout",
            "arch",
            "jobs",
            "confinement",
            "results_dir",
            "generated_dir",
            "problems_dir",
            "cache_dir",
        ),
    ],
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML into this file.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a comment for a pull request into this file; - prints it.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write a JSON record into this file; - prints it.")
    ] = None,
) -> None:
    """Re-evaluate past generations and compare with the stored results.

    Measures baseline and candidate again and compares speedups. Exit code: 0 no regression, 1 regressions, 2 wrong
    usage, 3 harness failure, 4 nothing comparable.

    Example: harness regress --best --junit regress.xml
    """
    if [markdown, json_file].count(Path("-")) > 1:
        raise UsageError("only one of --markdown and --json can be printed: give the other one a file")
    options = replace(options, again=True)
    wanted: Sequence[str | None] = runs or (None,)
    selection = replace(selection, where=tuple(ResultFilter(run=run, problem=only_problem) for run in wanted))
    changes = regress_stored(
        selection, options, rule, extraction=comparison.extraction, update=comparison.update, show=show_steps
    )
    code = gate(changes)
    _report(changes, code, junit=junit, markdown=markdown, json_file=json_file)
    raise typer.Exit(code)


def _report(
    changes: Sequence[Change], code: int, *, junit: Path | None, markdown: Path | None, json_file: Path | None
) -> None:
    from harness.report.export.json_records import dump_json

    if Path("-") not in (markdown, json_file):
        _print_table(changes)
    if junit is not None:
        write_text(junit, format_junit(changes))
    if markdown is not None:
        write_text(markdown, format_markdown(changes))
    if json_file is not None:
        write_text(json_file, dump_json(changes_record(changes, code)))


def _print_table(changes: Sequence[Change]) -> None:
    if not changes:
        typer.echo("nothing to re-evaluate: evaluate a run first")
        return
    console = Console()
    console.print(render_changes(changes, wide=console.width >= WIDE_TERMINAL))
    console.print(summarise_changes(changes), markup=False, highlight=False)
