"""`harness report`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.analysis.prices import parse_prices
from harness.cli.completion import complete_run
from harness.cli.output import print_records
from harness.cli.panels import Without
from harness.cli.results import AsJson, StoredPanel
from harness.store.queries import ResultFilter

if TYPE_CHECKING:
    from harness.report.html.page import ReportSummary

MEGABYTE = 1_000_000


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Runs; * and ? are wildcards.", autocompletion=complete_run),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
    where: Annotated[ResultFilter, Without("only_run", "only_outcome", "own_kernels")],
    title: Annotated[str, typer.Option(envvar="HARNESS_TITLE", help="The page's title. [default: the runs]")] = "",
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL=IN/OUT", help="US dollars per million prompt and answer tokens. Repeatable."),
    ] = None,
    max_mb: Annotated[
        float, typer.Option(min=0, help="Drop answers, then details, beyond this size; 0 for no limit.")
    ] = 30.0,
    as_json: AsJson = False,
    folders: StoredPanel,
    problems_dir: Annotated[
        Path | None, typer.Option(envvar="HARNESS_PROBLEMS_DIR", help="Folder of suites, for the references' sources.")
    ] = None,
) -> None:
    """Write one HTML file for offline use: leaderboard, charts, and a page per candidate.

    Example: harness report my-run other-run -o report.html

    With costs: harness report --price 'gpt-5*=1.25/10'
    """
    from harness.pipeline.data_folders import list_suite_roots
    from harness.report.html.page import render_report
    from harness.store.results import ResultStore

    with ResultStore.open(folders.results_dir, read_only=True) as store:
        summary = render_report(
            store,
            output,
            now=datetime.now(UTC),
            runs=runs or (),
            where=where,
            generated_dir=folders.generated_dir,
            problems_dirs=list_suite_roots(problems_dir),
            prices=parse_prices(price),
            title=title,
            max_bytes=round(max_mb * MEGABYTE) or None,
        )
    _print_summary(summary, as_json=as_json)


def _print_summary(summary: ReportSummary, *, as_json: bool) -> None:
    if as_json:
        counts = {name: getattr(summary, name) for name in ("evaluations", "with_details", "with_answer", "size_bytes")}
        print_records({"path": str(summary.path), **counts})
        return
    plural = "" if summary.evaluations == 1 else "s"
    typer.echo(
        f"{summary.path}: {summary.evaluations:,} evaluation{plural}, {summary.size_bytes / MEGABYTE:,.1f} MB. "
        "Open it in a browser."
    )
    if summary.with_answer < summary.evaluations:
        typer.echo(
            f"To stay within --max-mb, {summary.evaluations - summary.with_answer:,} lack their answer and "
            f"{summary.evaluations - summary.with_details:,} their details; choose fewer runs, or a larger file."
        )
