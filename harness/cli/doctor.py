"""`harness doctor`: reports what this machine can evaluate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from harness.cli.options import JsonOption, Only, print_records, print_rich
from harness.doctor.machine import MachinePart, examine_machine
from harness.domain import EMULATED
from harness.languages import LANGUAGES, LanguageRules
from harness.pipeline.options import EvaluateOptions

PART_WIDTH = 20  # of the column; a longer name is folded


def doctor(
    *,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the devices' speed again, on an idle machine.")
    ] = False,
    builds: Annotated[
        bool,
        typer.Option("--builds/--no-builds", help="Test each build strategy; minutes the first time, then seconds."),
    ] = True,
    options: Annotated[EvaluateOptions, Only("executor", "address", "arch", "confinement", "cache_dir")],
    json_output: JsonOption = False,
) -> None:
    """Report what this machine can do: compilers, torch, GPUs, sandbox. With --executor ray: the nodes of a cluster.

    Example: harness doctor
    """
    if options.executor == "ray":
        _report_cluster(options, json_output=json_output)
        return
    checks = _show_steps(
        examine_machine(
            options.architecture, options.cache, measure=measure, builds=builds, isolation=options.isolation
        )
    )
    if json_output:
        typer.echo(json.dumps({check.part: asdict(check) for check in checks}))
    else:
        print_checks(checks)


def _show_steps(found: Iterable[MachinePart | str]) -> Iterator[MachinePart]:
    """Name steps on stderr: beside a spinner in a terminal, otherwise in a line."""
    from rich.console import Console

    console = Console(stderr=True)
    status = console.status("")
    try:
        for one in found:
            status.stop()
            if isinstance(one, MachinePart):
                yield one
            elif console.is_terminal:
                status.update(f"{one} ...")
            else:
                typer.echo(f"{one} ...", err=True)
            status.start()
    finally:
        status.stop()


def summarise(checks: list[MachinePart]) -> list[str]:
    present = {check.part for check in checks if check.present}
    return [f"language {name}: {_describe_language(rules, present)}" for name, rules in LANGUAGES.items()]


def _describe_language(rules: LanguageRules, present: set[str]) -> str:
    has_gpu = any(part.startswith("GPU cuda") for part in present)
    if not present.issuperset(rules.parts):
        return "not evaluated"
    if rules.uses_gpu and has_gpu and present.issuperset(rules.gpu_parts):
        return "verified and timed"
    if EMULATED not in rules.devices:
        return "verified and timed on the CPU"
    if rules.compiles_only:
        return "compiled for the emulated GPU, not run"
    return "verified on the emulated device, not timed"


def _report_cluster(options: EvaluateOptions, *, json_output: bool) -> None:
    from harness.doctor.cluster_nodes import examine_cluster
    from harness.executors.cluster.connection import ClusterSettings

    typer.echo("asking the nodes of the cluster ...", err=True)
    reports = examine_cluster(ClusterSettings(address=options.address), options)
    if json_output:
        print_records(*map(asdict, reports))
        return
    from harness.report.terminal.tables import make_table, style_text

    table = make_table("node", "device", "chip", "isolation layers", "certificate", title="Nodes of the cluster")
    for report in reports:
        for device in report.devices:
            certificate = style_text(device.certificate, "green" if device.is_certified else "yellow")
            table.add_row(report.node, device.name, device.chip, device.isolation, certificate)
        if not report.devices:
            table.add_row(report.node, "none", style_text(report.obstacle, "yellow"), "", "")
    print_rich(table)


def print_checks(checks: Iterable[MachinePart]) -> None:
    """Print each check as soon as it is known."""
    from rich.console import Console

    from harness.report.terminal.tables import make_table, style_text

    console = Console()
    printed: list[MachinePart] = []
    for check in checks:
        mark = style_text("yes", "green") if check.present else style_text("no", "yellow")
        row = make_table(title=None if printed else "This machine")
        row.show_header = not printed
        for name, width in (("part", PART_WIDTH), ("", 3), ("found, or effect of its absence", None)):
            row.add_column(name, overflow="fold", width=width)
        row.add_row(check.part, mark, style_text(check.found if check.present else check.without_it))
        console.print(row)
        printed.append(check)
    for line in summarise(printed):
        typer.echo(line)
