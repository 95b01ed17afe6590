"""`harness report`."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.analysis.metrics import parse_prices
from harness.capture.options import FOLDER
from harness.cli.options import Only, Without, complete_run, print_records
from harness.cli.results import AsJson, StoredPanel
from harness.domain.options import RunFolders
from harness.store.queries import ResultFilter

if TYPE_CHECKING:
    from harness.report.html.page import ReportChoice, ReportPage

MEGABYTE = 1_000_000
DEFAULT_PORT = 8701


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs; * and ? are wildcards.", autocompletion=complete_run),
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
    is_live: Annotated[
        bool,
        typer.Option("--serve", help="Show the page at http://127.0.0.1:PORT/, with new evaluations as they come."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="NUMBER", help="With --serve; 0 for any.")
    ] = DEFAULT_PORT,
    captured_dir: Annotated[Path, typer.Option(help="Folder of captured models.", metavar="DIR")] = FOLDER,
    as_json: AsJson = False,
    folders: StoredPanel,
    paths: Annotated[RunFolders, Only("problems_dir")],
) -> None:
    """Write one HTML file for offline use: leaderboard, charts, and a page per candidate.

    Example: harness report my-run other-run -o report.html

    With costs: harness report --price 'gpt-5*=1.25/10'

    While a run works: harness report my-run --serve
    """
    from harness.pipeline.data_folders import list_suite_roots
    from harness.report.html.page import ReportChoice, render_report
    from harness.store.results import ResultStore

    choice = ReportChoice(
        runs=runs or (),
        where=where,
        generated_dir=folders.generated_dir,
        problems_dirs=(*list_suite_roots(paths.problems_dir), captured_dir),
        captured_dir=captured_dir,
        prices=parse_prices(price),
        title=title,
        max_bytes=round(max_mb * MEGABYTE) or None,
    )
    if is_live:
        _serve(folders.results_dir, choice, port, as_json=as_json)
        return
    with ResultStore.open(folders.results_dir, read_only=True) as store:
        page = render_report(store, output, choice, now=datetime.now(UTC))
    _print_summary(output, page, as_json=as_json)


def _serve(results_dir: Path, choice: ReportChoice, port: int, *, as_json: bool) -> None:
    """Return after Ctrl-C, which is the usual end."""
    from harness.report.html.page import LivePage, LiveServer

    with LiveServer(LivePage(results_dir, choice), port) as server, suppress(KeyboardInterrupt):
        if as_json:
            print_records({"address": server.address})
        else:
            typer.echo(f"{server.address} shows evaluations as they are stored, until Ctrl-C")
        server.serve_forever()


def _print_summary(path: Path, page: ReportPage, *, as_json: bool) -> None:
    if as_json:
        counts = {name: getattr(page, name) for name in ("evaluations", "with_details", "with_answer", "size_bytes")}
        print_records({"path": str(path), **counts})
        return
    plural = "" if page.evaluations == 1 else "s"
    size = f"{page.size_bytes / MEGABYTE:,.1f} MB"
    typer.echo(f"{path}: {page.evaluations:,} evaluation{plural}, {size}. Open it in a browser.")
    if page.with_answer < page.evaluations:
        typer.echo(
            f"To stay within --max-mb, {page.evaluations - page.with_answer:,} lack their answer and "
            f"{page.evaluations - page.with_details:,} their details; choose fewer runs, or a larger file."
        )
