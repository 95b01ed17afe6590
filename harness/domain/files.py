"""Reading Python files, and atomic file replacement."""

from __future__ import annotations

import os
import secrets
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BYTE_ORDER_MARK = "\ufeff"  # Windows editors begin files with it


def read_python(path: Path) -> str:
    """As Python reads a file: without a byte order mark, in UTF-8 or the encoding that it declares. Raises OSError or
    ValueError."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except SyntaxError as error:  # of the declaration
        raise ValueError(str(error)) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path; rename it to `path` at the end, or remove it on an exception. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name[:100]}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
