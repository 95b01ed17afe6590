"""`harness diff`: compares runs, models, prompts or versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.options import Only, print_records, write_text
from harness.cli.results import AsJson, StoredPanel
from harness.store.queries import ResultFilter

if TYPE_CHECKING:
    from harness.analysis.side_material import SideBySide


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
    only_problem: Annotated[
        str | None, typer.Option("--problem", help="Only this problem; * and ? are wildcards.")
    ] = None,
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
    if html is not None:
        _write_page(html, sides)
    if as_json:
        from harness.report.html.diff_page import comparison_record

        print_records(comparison_record(sides))
        return
    from rich.console import Console

    from harness.report.terminal.diff import render_comparison

    console = Console()
    console.print(render_comparison(sides, code=code, width=console.width))
    if html is not None:
        typer.echo(str(html))


def _write_page(path: Path, sides: SideBySide) -> None:
    from datetime import UTC, datetime

    from harness.report.html.diff_page import format_comparison_page

    made_at = datetime.now(UTC).isoformat(timespec="minutes")
    write_text(path, format_comparison_page(sides, made_at=made_at))
