"""Writes what a command made into a file, whole or not at all, or prints it where the file is called `-`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import typer

from harness.domain import StoreError

STDOUT = Path("-")


def write_text(path: Path, text: str) -> None:
    """Raises StoreError when the file cannot be written; an older one is then still there."""
    if path == STDOUT:
        typer.echo(text, nl=False)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name[:40]}.", delete=False) as file:
            partial = Path(file.name)
            try:
                file.write(text.encode("utf-8", "replace"))
                os.fchmod(file.fileno(), 0o644)
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; choose another file") from error
