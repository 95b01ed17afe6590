"""Reads and writes the table of fingerprints of stored candidates."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from harness.domain import FILE_RUN

EXACT, PART = "exact", "part"


def add_fingerprints(connection: sqlite3.Connection, candidate: str, source: str) -> None:
    if _is_known(connection, candidate):
        return
    from harness.copies.fingerprints import take_fingerprint

    fingerprint = take_fingerprint(source)
    rows = [(fingerprint.exact, EXACT, candidate), *((value, PART, candidate) for value in fingerprint.values)]
    connection.executemany("INSERT OR IGNORE INTO fingerprints VALUES (?, ?, ?)", rows)


def find_missing(connection: sqlite3.Connection) -> list[str]:
    known = "SELECT candidate FROM fingerprints WHERE kind = ?"
    rows = connection.execute(f"SELECT digest FROM candidates WHERE digest NOT IN ({known})", (EXACT,))
    return [digest for (digest,) in rows]


def build_first_query(columns: str, values: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    marks = ", ".join("?" * len(values))
    alike = f"SELECT candidate FROM fingerprints WHERE kind = ? AND value IN ({marks})"
    text = f"SELECT {columns} WHERE e.candidate IN ({alike}) AND e.run != ? ORDER BY e.id LIMIT 1"
    return text, (PART, *values, FILE_RUN)


def read_programs(connection: sqlite3.Connection) -> dict[str, str]:
    tables = connection.execute("SELECT count(*) FROM main.sqlite_master WHERE name = 'fingerprints'").fetchone()[0]
    if not tables:
        return {}
    return dict(connection.execute("SELECT candidate, value FROM fingerprints WHERE kind = ?", (EXACT,)))


def _is_known(connection: sqlite3.Connection, candidate: str) -> bool:
    query = "SELECT 1 FROM fingerprints WHERE candidate = ? AND kind = ?"
    return connection.execute(query, (candidate, EXACT)).fetchone() is not None
