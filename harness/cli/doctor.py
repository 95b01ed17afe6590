"""`harness doctor`, `harness red-team` and `harness cache`: examine this machine, its evaluator and its build cache."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.builder.cache import default_cache_folder, find_machine_folder, prune_cache, read_cache
from harness.cli.options import GroupedCommand, JsonOption, Only, expand_panels, print_records, print_rich
from harness.cli.progress import show_steps
from harness.doctor.machine import MachinePart, examine_machine
from harness.domain import EMULATED, UsageError
from harness.executors.settings import LocalSettings
from harness.languages import LANGUAGES, LanguageRules
from harness.pipeline.options import EvaluateOptions
from harness.report.terminal.search_progress import Step
from harness.report.terminal.tables import make_table, style_text
from harness.report.values import count

if TYPE_CHECKING:
    from harness.evaluation.certificate import Basis, Certificate
    from harness.redteam import CorpusFile, CorpusResult, RedTeam

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
        print_records({check.part: asdict(check) for check in checks})
    else:
        print_checks(checks)


def _show_steps(found: Iterable[MachinePart | str]) -> Iterator[MachinePart]:
    """Name steps on stderr: beside a spinner in a terminal, otherwise in a line."""
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


cache_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@cache_app.command(cls=GroupedCommand)
@expand_panels
def info(settings: Annotated[LocalSettings, Only("cache_dir")]) -> None:
    """Show the number and size of cached builds and precompiled headers.

    Example: harness cache info
    """
    folder = settings.cache or default_cache_folder()
    contents = read_cache(folder)
    typer.echo(f"cache    {folder}")
    for name, entries in (
        ("builds", contents.builds),
        ("headers", contents.prebuilt),
        ("left over", contents.leftovers),
    ):
        size_bytes = sum(entry.size_bytes for entry in entries)
        oldest = f", oldest use {_describe_age(min(entry.used_at for entry in entries))}" if entries else ""
        typer.echo(f"{name:<9}{len(entries):>6}  {_describe_size(size_bytes):>9}{oldest}")
    typer.echo(f"{'total':<15}  {_describe_size(contents.size_bytes):>9}")


@cache_app.command(cls=GroupedCommand)
@expand_panels
def prune(settings: Annotated[LocalSettings, Only("cache_dir", "cache_size")]) -> None:
    """Remove the least recently used builds until the rest fits. Builds in use stay.

    Example: harness cache prune --cache-size 5G
    """
    folder = settings.cache or default_cache_folder()
    removed, size_bytes = prune_cache(folder, settings.max_cache_bytes)
    left = read_cache(folder)
    typer.echo(f"removed {removed} ({_describe_size(size_bytes)}), {_describe_size(left.size_bytes)} left in {folder}")


def _describe_size(size_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} GiB"


def _describe_age(used_at: float) -> str:
    hours = (time.time() - used_at) / 3600
    return f"{count(round(hours / 24), 'day')} ago" if hours >= 48 else f"{count(round(hours), 'hour')} ago"


_STYLES = {"caught": "green", "passed": "green", "skipped": "dim"}


def red_team(
    *,
    corpus: Annotated[
        Path | None, typer.Option(help="Folder of exploits and controls. [default: the shipped one]", metavar="DIR")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only files like 'attacks/forged*'. Repeatable.", metavar="PATTERN")
    ] = None,
    draws: Annotated[
        int, typer.Option(help="Evaluations of each file, each with other secret inputs.", min=1, metavar="N")
    ] = 1,
    settings: Annotated[LocalSettings, Only("arch", "confinement", "cache_dir")],
    json_output: JsonOption = False,
) -> None:
    """Evaluate a corpus of exploits and legitimate programs with this evaluator.

    If every exploit is caught and every legitimate program accepted, the exit code is 0 and the machine earns a
    certificate for its later evaluations. Otherwise the exit code is 1.

    Example: harness red-team --only 'attacks/forged*'
    """
    from harness.redteam import RedTeam, choose_files, read_corpus

    files = choose_files(read_corpus(_find_corpus(corpus)), only or ())
    earns = corpus is None and not only
    results: list[CorpusResult] = []
    for _ in range(draws):  # programs of one team share the inputs of their problem
        with RedTeam(settings) as team:
            before = _describe_devices(team) if earns else []
            _evaluate(team, files, results, total=draws * len(files), prints=json_output)
    certificates = _settle(settings, before, results)
    as_expected = all(result.as_expected for result in results)
    if json_output:
        made = [{"digest": certificate.digest, **asdict(certificate)} for certificate in certificates]
        print_records({"as_expected": as_expected, "certificates": made})
    else:
        _print(results, certificates, earns=earns)
    if not as_expected:
        raise typer.Exit(1)


def _find_corpus(given: Path | None) -> Path:
    from harness.evaluation.certificate import find_corpus

    folder = given or find_corpus()
    if folder is None:
        raise UsageError("the red-team corpus is not installed: give one with --corpus")
    return folder


def _describe_devices(team: RedTeam) -> list[tuple[Any, Basis]]:
    """Omit the isolation layers."""
    from harness.evaluation.certificate import describe_basis, find_corpus

    corpus = find_corpus()
    return [] if corpus is None else [(device, describe_basis(device, corpus, "")) for device in team.devices()]


def _evaluate(
    team: RedTeam, files: Sequence[CorpusFile], results: list[CorpusResult], *, total: int, prints: bool
) -> None:
    """Add to `results`. With `prints` print a JSON record of each file when it ends."""

    def take(result: CorpusResult) -> None:
        results.append(result)
        if prints:
            print_records(_record_file(result))

    def read() -> list[Step]:
        done, unexpected = len(results), sum(not one.as_expected for one in results)
        note = f"{done} of {total}" + (f", {unexpected} not as expected" if unexpected else "")
        return [Step(name="evaluating", total=total, done=done, worked=done, note=note)]

    with show_steps(read):
        team.evaluate(files, take)


def _settle(
    settings: LocalSettings, before: Sequence[tuple[Any, Basis]], results: Sequence[CorpusResult]
) -> list[Certificate]:
    """Write or remove the certificates of a full run."""
    from harness.redteam import settle_certificate

    folder = find_machine_folder(settings.cache)
    settled = (settle_certificate(folder, device, basis, results) for device, basis in before)
    return [certificate for certificate in settled if certificate is not None]


def _print(results: Sequence[CorpusResult], certificates: Sequence[Certificate], *, earns: bool) -> None:
    console = Console()
    console.print(_make_table(results))
    for result in results:
        if not result.as_expected:
            console.print(_explain(result), soft_wrap=False)
    for line in summarise_results(results):
        typer.echo(line)
    for certificate in certificates:
        typer.echo(f"certificate {certificate.digest} for {certificate.basis.device}, of {certificate.made_at}")
    if earns and not certificates:
        typer.echo("no certificate: it requires a full run with all results as expected")


def _make_table(results: Sequence[CorpusResult]) -> Table:
    """Sort unexpected results first."""
    from harness.redteam import LAYERS

    table = make_table("=layer", "file", "=result", "=by", ">s")
    ordered = sorted(
        results, key=lambda result: (result.as_expected, LAYERS.index(result.file.layer), result.file.name)
    )
    for result in ordered:
        spent = "" if result.evaluation is None else f"{result.evaluation.duration_s:.1f}"
        name = result.file.name.split("/")[1]
        verdict = style_text(result.result, _STYLES.get(result.result, "bold red"))
        table.add_row(result.file.layer, style_text(name), verdict, style_text(result.by), spent)
    return table


def _explain(result: CorpusResult) -> Text:
    expected = ", ".join(result.file.expected)
    if result.file.faster_than is not None:
        expected += f", faster than {result.file.faster_than:g}"
    parts = [f"{result.file.name}: expected {expected}; found {result.by}"]
    if result.evaluation is not None and result.evaluation.message:
        parts.append(f": {result.evaluation.message[:300]}")
    if result.file.known_open:
        parts.append(f" (known: {result.file.known_open})")
    return style_text("".join(parts), "red")


def summarise_results(results: Sequence[CorpusResult]) -> list[str]:
    attacks = Counter(result.result for result in results if result.file.is_attack)
    controls = Counter(result.result for result in results if not result.file.is_attack)
    odd = "".join(f", {attacks[name]} {name}" for name in ("other", "failed") if attacks[name])
    odd_controls = f", {controls['failed']} failed" if controls["failed"] else ""
    lines = [
        f"attacks:  {attacks['caught']} caught, {attacks['accepted']} accepted{odd}",
        f"controls: {controls['passed']} accepted, {controls['refused']} refused{odd_controls}",
    ]
    skipped = attacks["skipped"] + controls["skipped"]
    return [*lines, f"skipped:  {skipped} that need a GPU"] if skipped else lines


def _record_file(result: CorpusResult) -> dict[str, Any]:
    evaluation = result.evaluation
    return {
        "file": result.file.name,
        "layer": result.file.layer,
        "expected": list(result.file.expected),
        "outcome": None if evaluation is None else str(evaluation.outcome),
        "result": result.result,
        "as_expected": result.as_expected,
        "by": result.by,
        "message": "" if evaluation is None else evaluation.message,
        "findings": [asdict(one) for one in evaluation.findings] if evaluation else [],
        "speedup": None if evaluation is None else evaluation.speedup,
        "seconds": None if evaluation is None else round(evaluation.duration_s, 3),
        "known_open": result.file.known_open,
    }
