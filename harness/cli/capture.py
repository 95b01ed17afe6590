"""`harness capture` finds problems in a model, `harness apply` puts kernels into it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from harness.builder.cache import find_machine_folder
from harness.capture.options import FOLDER, RECORD, CaptureOptions
from harness.cli.options import JsonOption, Only, print_records, print_rich
from harness.cli.results import StoredPanel
from harness.domain import UsageError
from harness.executors.settings import LocalSettings
from harness.report.terminal.capture import list_apply_notes, list_capture_notes, render_apply, render_capture
from harness.store.runs import check_name

ScriptArguments = Annotated[
    list[str] | None, typer.Argument(help="Arguments of the script, after --.", metavar="[-- ARG]...")
]
QUIET = ("KINETO_LOG_LEVEL", "9")  # torch's profiler writes to standard error


def capture(
    script: Annotated[Path, typer.Argument(help="The script that calls the model.", metavar="SCRIPT")],
    arguments: ScriptArguments = None,
    *,
    model: Annotated[str, typer.Option(help="A variable of the script, or the name of a class.", metavar="NAME")],
    name: Annotated[
        str | None, typer.Option(help="Name of the suite to write. [default: the model's]", metavar="NAME")
    ] = None,
    captured_dir: Annotated[Path, typer.Option(help="Folder of captured suites.", metavar="DIR")] = FOLDER,
    options: CaptureOptions,
    settings: Annotated[LocalSettings, Only("cache_dir")],
    json_output: JsonOption = False,
) -> None:
    """Find where a model spends its time, and write its modules as problems.

    The script runs in this process, on its own data, until it has called the model often enough.

    Example: harness capture my_script.py --model net

    Then: harness run --suite captured/net --model gpt-5, harness apply captured/net --script my_script.py
    """
    os.environ.setdefault(*QUIET)
    from harness.capture.capture import capture as capture_model

    suite = check_name("suite", name or model.rpartition(".")[2])
    folder = captured_dir / suite
    cache = find_machine_folder(settings.cache)
    report = capture_model(script, arguments or (), model, folder, options=options, cache=cache)
    record = report.make_record()
    if json_output:
        print_records(record)
        return
    print_rich(render_capture(record))
    for line in list_capture_notes(record, folder, RECORD):
        typer.echo(line)
    if report.written:
        typer.echo(f"then: harness run --suite {folder} --model NAME")
        typer.echo(f"      harness apply {folder} --script {script}{' -- ...' if arguments else ''}")


NOTHING_APPLIED = 1


def apply(
    folder: Annotated[Path, typer.Argument(help="The captured suite.", metavar="FOLDER")],
    arguments: ScriptArguments = None,
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
