"""`harness extract`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import JsonOption, Only
from harness.cli.reextract import CheckOption, DiffOption, WriteOption, reextract
from harness.domain import UsageError
from harness.domain.files import find_wide_encoding, raising
from harness.domain.options import RunFolders

NOTHING_FOUND_EXIT_CODE = 1


def extract(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="A raw completion (- reads standard input); with --stored, runs [default: all].",
            metavar="FILE|RUN",
            show_default=False,
        ),
    ] = None,
    *,
    stored: Annotated[bool, typer.Option("--stored", help="Extract stored completions again; list changes.")] = False,
    write: WriteOption = False,
    check: CheckOption = False,
    show_diff: DiffOption = False,
    json_output: JsonOption = False,
    paths: Annotated[RunFolders, Only("generated_dir")],
) -> None:
    """Print the program that a raw completion submits, and on stderr the rule that found it.

    Of several programs, stderr names the chosen one and the reason. Exits with 1 when there is none.

    Example: harness extract generated/my-run/softmax/0/completion.md > candidate.py

    With --stored, extract stored completions again and list the samples whose program changes. --write stores the new
    programs for `harness evaluate`.

    Example: harness extract --stored --check
    """
    if stored:
        reextract(names, write=write, check=check, show_diff=show_diff, json_output=json_output, paths=paths)
        return
    if write or check or show_diff:
        raise UsageError("--write, --check and --diff need --stored")
    if names is None or len(names) != 1:
        raise UsageError("name one file with a raw completion, or - for standard input; or add --stored")
    _extract_file(Path(names[0]), json_output=json_output)


def _extract_file(file: Path, *, json_output: bool) -> None:
    from harness.generate.extraction.extractor import find_code
    from harness.generate.extraction.notes import explain_reasoning, list_alternatives, summarise_choice

    text = _read_text(file)
    found = find_code(text)
    extraction = found.extraction if found else None
    if json_output:
        typer.echo(json.dumps({"source": found.source, **asdict(extraction)} if found and extraction else None))
    elif found:
        typer.echo(found.source, nl=False)
    if extraction is None:
        reason = explain_reasoning(text)
        typer.echo(f"no program with ModelNew in {file}{f': {reason}' if reason else ''}", err=True)
        raise typer.Exit(NOTHING_FOUND_EXIT_CODE)
    typer.echo("\n".join([summarise_choice(extraction), *list_alternatives(extraction)]), err=True)


def _read_text(file: Path) -> str:
    with raising(UsageError, f"read {file}"):
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    return content.decode(find_wide_encoding(content) or "utf-8", "replace")
