"""Prints JSON and tables; writes output to a file atomically."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from harness.domain import StoreError
from harness.domain.files import raising, replacing

if TYPE_CHECKING:
    from rich.console import RenderableType

STDOUT = Path("-")


def print_records(*records: Any) -> None:
    """Print one JSON object per line."""
    from harness.report.export.json_records import dump_json

    typer.echo(dump_json(*records), nl=False)


def print_rich(content: RenderableType) -> None:
    from rich.console import Console

    Console().print(content)


def write_text(path: Path, text: str) -> None:
    """Path `-` prints the text. On StoreError an older file is kept."""
    if path == STDOUT:
        typer.echo(text, nl=False)
        return
    with raising(StoreError, f"write {path}", "; choose another file"), replacing(path) as partial:
        partial.write_bytes(text.encode("utf-8", "replace"))
