"""Which version of its problem each stored evaluation was made on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from harness import __version__
from harness.domain import StoreError
from harness.store.results import DATABASE_NAME
from harness.store.schema import connect_reader


def read_problem_digests(results_dir: Path) -> dict[int, str]:
    """The digest of the problem's text by the number of the evaluation. Raises StoreError."""
    path = results_dir / DATABASE_NAME
    try:
        with closing(connect_reader(path, __version__)) as connection:
            return dict(connection.execute("SELECT id, problem_digest FROM evaluations"))
    except sqlite3.Error as error:
        raise StoreError(f"cannot read {path}: {error}; check the file and its disk") from error
