"""`harness apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import JsonOption, Only, print_records, print_rich
from harness.cli.results import StoredPanel

NOTHING_APPLIED = 1


def apply(
    folder: Annotated[Path, typer.Argument(help="The captured suite.", metavar="FOLDER")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script, after --.", metavar="[-- ARG]...")
    ] = None,
    *,
    script: Annotated[Path, typer.Option(help="The script that calls the model.", metavar="FILE")],
    folders: Annotated[StoredPanel, Only("results_dir")],
    modes: Annotated[
        str, typer.Option(help="How to run the model: eager, compile and graph, separated by commas.")
    ] = "eager",
    json_output: JsonOption = False,
) -> None:
    """Put the best verified kernels into the model, and verify and measure the whole model.

    Kernels that fail in the model, or do not make it faster, are left out. FOLDER/applied is a package that applies
    the others without harness. Exit code 1 if no kernel is left.

    Example: harness apply captured/net --script my_script.py
    """
    from harness.capture.apply import apply_script
    from harness.capture.comparison import MODES
    from harness.domain import UsageError
    from harness.report.terminal.capture import list_apply_notes, render_apply

    chosen = modes.split(",")
    if unknown := [one for one in chosen if one not in MODES]:
        raise UsageError(f"unknown mode {', '.join(unknown)}; choose among {', '.join(MODES)}")
    report = apply_script(folder, script, arguments or (), results_dir=folders.results_dir, modes=chosen)
    record = report.make_record()
    if json_output:
        print_records(record)
    else:
        if record["kernels"]:
            print_rich(render_apply(record))
        for line in list_apply_notes(record, folder):
            typer.echo(line)
    if not report.kept:
        raise typer.Exit(NOTHING_APPLIED)
