"""`harness red-team`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.options import JsonOption, Only
from harness.domain import UsageError
from harness.executors.settings import LocalSettings

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from harness.evaluation.certificate import Basis, Certificate
    from harness.redteam import CorpusFile, CorpusResult, RedTeam

_STYLES = {"caught": "green", "passed": "green", "skipped": "dim"}


def red_team(
    *,
    corpus: Annotated[
        Path | None, typer.Option(help="Folder of exploits and controls. [default: the shipped one]", metavar="DIR")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Only matching files, like 'attacks/forged*'.", metavar="PATTERN")
    ] = None,
    settings: Annotated[LocalSettings, Only("arch", "confinement", "cache_dir")],
    json_output: JsonOption = False,
) -> None:
    """Evaluate a corpus of exploits and legitimate programs with this evaluator.

    If every exploit is caught and every legitimate program accepted, the exit code is 0 and the machine earns a
    certificate for its later evaluations. Otherwise the exit code is 1.

    Example: harness red-team --only 'attacks/forged*'
    """
    from harness.redteam import RedTeam, RedTeamSettings, choose_files, read_corpus

    files = choose_files(read_corpus(_find_corpus(corpus)), only)
    with RedTeam(RedTeamSettings(local=settings)) as team:
        earns = corpus is None and only is None
        before = _describe_devices(team) if earns else []
        results = _evaluate(team, files)
        certificates = _settle(settings, before, results)
    if json_output:
        typer.echo(json.dumps(_record(results, certificates)))
    else:
        _print(results, certificates, earns=earns)
    if not all(result.as_expected for result in results):
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


def _evaluate(team: RedTeam, files: Sequence[CorpusFile]) -> list[CorpusResult]:
    from harness.cli.progress import show_steps
    from harness.report.terminal.search_progress import Step

    results: list[CorpusResult] = []

    def read() -> list[Step]:
        done, unexpected = len(results), sum(not one.as_expected for one in results)
        note = f"{done} of {len(files)}" + (f", {unexpected} not as expected" if unexpected else "")
        return [Step(name="evaluating", total=len(files), done=done, worked=done, note=note)]

    with show_steps(read):
        team.evaluate(files, results.append)
    return results


def _settle(
    settings: LocalSettings, before: Sequence[tuple[Any, Basis]], results: Sequence[CorpusResult]
) -> list[Certificate]:
    """Write or remove the certificates of a full run."""
    from harness.builder.cache import find_machine_folder
    from harness.redteam import settle_certificate

    folder = find_machine_folder(settings.cache)
    settled = (settle_certificate(folder, device, basis, results) for device, basis in before)
    return [certificate for certificate in settled if certificate is not None]


def _print(results: Sequence[CorpusResult], certificates: Sequence[Certificate], *, earns: bool) -> None:
    from rich.console import Console

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
    from harness.report.terminal.tables import make_table, style_text

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
    from harness.report.terminal.tables import style_text

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


def _record(results: Sequence[CorpusResult], certificates: Sequence[Certificate]) -> dict[str, Any]:
    return {
        "files": [_record_file(result) for result in results],
        "as_expected": all(result.as_expected for result in results),
        "certificates": [{"digest": certificate.digest, **asdict(certificate)} for certificate in certificates],
    }


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
        "speedup": None if evaluation is None else evaluation.speedup,
        "seconds": None if evaluation is None else round(evaluation.duration_s, 3),
        "known_open": result.file.known_open,
    }
