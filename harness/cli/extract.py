"""`harness extract`: shows which program the harness finds in a raw completion, and by which rule."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from harness.domain import UsageError

NOTHING_FOUND_EXIT_CODE = 1


def extract(
    file: Annotated[Path, typer.Argument(help="A raw completion; - reads standard input.", show_default=False)],
    json_output: Annotated[
        bool, typer.Option("--json", envvar="HARNESS_JSON", help="Print one JSON record on stdout.")
    ] = False,
) -> None:
    """Print the program that a raw completion submits. The rule that found it goes to stderr, and of several programs
    which one was taken and why, and why not the others.

    Exits with 1 when there is none.

    Example: harness extract generated/my-run/softmax/0/completion.md > candidate.py
    """
    from harness.generate.extraction.extractor import find_code
    from harness.generate.extraction.notes import list_alternatives, summarise_choice

    found = find_code(_read_text(file))
    extraction = found.extraction if found else None
    if json_output:
        typer.echo(json.dumps({"source": found.source, **asdict(extraction)} if found and extraction else None))
    elif found:
        typer.echo(found.source, nl=False)
    if extraction is None:
        typer.echo(f"no program with ModelNew in {file}", err=True)
        raise typer.Exit(NOTHING_FOUND_EXIT_CODE)
    typer.echo("\n".join([summarise_choice(extraction), *list_alternatives(extraction)]), err=True)


def _read_text(file: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    return content.decode("utf-8", "replace")
