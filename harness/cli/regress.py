"""`harness regress`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.analysis.change_detection import GateRule
from harness.cli.options import Only, Panel, complete_run
from harness.domain import UsageError
from harness.domain.options import option
from harness.pipeline.options import EvaluateOptions
from harness.pipeline.regress import Selection, regress_stored
from harness.store.queries import ResultFilter

if TYPE_CHECKING:
    from harness.analysis.change_detection import Change

WIDE_TERMINAL = 110


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
    only_problem: Annotated[
        str | None, typer.Option("--problem", help="Only this problem; * and ? are wildcards.")
    ] = None,
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
    from harness.analysis.change_detection import gate
    from harness.cli.progress import show_steps

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
    from harness.cli.options import write_text
    from harness.report.export.json_records import dump_json
    from harness.report.terminal.regress import changes_record, format_junit, format_markdown

    if Path("-") not in (markdown, json_file):
        _print_table(changes)
    if junit is not None:
        write_text(junit, format_junit(changes))
    if markdown is not None:
        write_text(markdown, format_markdown(changes))
    if json_file is not None:
        write_text(json_file, dump_json(changes_record(changes, code)))


def _print_table(changes: Sequence[Change]) -> None:
    from rich.console import Console

    from harness.report.terminal.regress import render_changes, summarise_changes

    if not changes:
        typer.echo("nothing to re-evaluate: evaluate a run first")
        return
    console = Console()
    console.print(render_changes(changes, wide=console.width >= WIDE_TERMINAL))
    console.print(summarise_changes(changes), markup=False, highlight=False)
