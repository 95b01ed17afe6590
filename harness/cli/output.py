"""Writes output to a file atomically, or prints it for `-`."""

from __future__ import annotations

from pathlib import Path

import typer

from harness.domain import StoreError
from harness.domain.files import replacing

STDOUT = Path("-")


def write_text(path: Path, text: str) -> None:
    """Raises StoreError; an older file then stays."""
    if path == STDOUT:
        typer.echo(text, nl=False)
        return
    try:
        with replacing(path) as partial:
            partial.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; choose another file") from error
