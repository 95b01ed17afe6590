"""Defines the tables of `results/harness.db`, and upgrades older schemas.

Filtered and sorted values are columns of `evaluations`; the whole evaluation is JSON in `details`, so that listings do
not read it.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from harness import __version__
from harness.domain import StoreError
from harness.store.columns import COLUMNS, SCHEMA_VERSION, Column

APPLICATION_ID = 0x68726E73  # "hrns"
BUSY_TIMEOUT_S = 30.0

_COLUMNS = ", ".join(f"{name} {column.sql_type}" for name, column in COLUMNS.items() if name != "id")
_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE environments (digest TEXT PRIMARY KEY, entries TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE candidates (digest TEXT PRIMARY KEY, source BLOB NOT NULL);
CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, slot TEXT NOT NULL, problem_digest TEXT NOT NULL, {_COLUMNS}
);
CREATE TABLE details (
    evaluation_id INTEGER PRIMARY KEY REFERENCES evaluations (id),
    environment TEXT NOT NULL REFERENCES environments (digest),
    evaluation TEXT NOT NULL
);
CREATE TABLE build_logs (evaluation_id INTEGER PRIMARY KEY REFERENCES evaluations (id), log BLOB NOT NULL);
CREATE INDEX evaluations_by_slot ON evaluations (slot, problem_digest);
CREATE INDEX evaluations_by_sample ON evaluations (run, problem, sample, turn);
"""
# Derived from `candidates` and made again where it is missing, so it belongs to no schema version. `kind`: "exact" or
# "part", as in harness.copies.
_FINGERPRINTS = """
CREATE TABLE IF NOT EXISTS fingerprints (
    value TEXT NOT NULL, kind TEXT NOT NULL, candidate TEXT NOT NULL, PRIMARY KEY (value, kind, candidate)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fingerprints_by_candidate ON fingerprints (candidate, kind);
CREATE INDEX IF NOT EXISTS evaluations_by_candidate ON evaluations (candidate);
"""


def connect_writer(path: Path) -> sqlite3.Connection:
    """Create a missing file; back up and upgrade an older schema. Raises StoreError or sqlite3.Error.

    WAL makes a commit atomic after kill -9; `synchronous=FULL` also survives power loss, for a few ms per commit.
    """
    connection = _connect(f"{path.absolute().as_uri()}?mode=rwc")
    try:
        if not _is_new(connection):
            check_schema(connection, path)
        _back_up_older(connection, path)
        _enable_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        _prepare_tables(connection)
        check_schema(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A missing file reads as an empty store, an older schema as the present one. Raises StoreError or
    sqlite3.Error."""
    if not path.exists() or path.stat().st_size == 0:
        connection = _connect(":memory:")
        _prepare_tables(connection)
        return connection
    connection = _connect(f"{path.absolute().as_uri()}?{_reading_mode(path)}")
    try:
        check_schema(connection, path)
        # Create a temporary view for a read-only file of an older schema. The table's columns come first, if a writer
        # adds them.
        added = _list_added(_read_pragma(connection, "user_version"))
        if added:
            values = ", ".join(f"{_read_json(column)} AS {name}" for name, column in added.items())
            connection.execute(f"CREATE TEMP VIEW evaluations AS SELECT e.*, {values} FROM main.evaluations e")
    except BaseException:
        connection.close()
        raise
    return connection


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreError."""
    if _read_pragma(connection, "application_id") != APPLICATION_ID:
        raise StoreError(
            f"{path} is an SQLite file, but not a harness database; "
            "move it away or choose another folder with --results-dir"
        )
    version = _read_pragma(connection, "user_version")
    if not 1 <= version <= SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by harness {_read_writer(connection)} in schema {version}; "
            f"this harness {__version__} reads schemas up to {SCHEMA_VERSION}: "
            "upgrade harness, or choose another folder with --results-dir"
        )


def _connect(address: str) -> sqlite3.Connection:
    # Explicit transactions (isolation_level=None): the module's implicit ones are deferred, and a deferred one that
    # becomes a writer fails at once instead of waiting for the lock.
    return sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def _reading_mode(path: Path) -> str:
    """WAL needs a lock file. If that cannot be created and no log exists, the file is opened as immutable."""
    beside = [path.with_name(f"{path.name}-{part}") for part in ("wal", "shm")]
    fixed = not os.access(path.parent, os.W_OK) and not any(file.exists() for file in beside)
    return "mode=ro&immutable=1" if fixed else "mode=ro"


def _is_new(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and _read_pragma(connection, "application_id") == 0


def locate_backup(path: Path, version: int) -> Path:
    return path.with_name(f"{path.name}.schema-{version}")


def _back_up_older(connection: sqlite3.Connection, path: Path) -> None:
    version = _read_pragma(connection, "user_version")
    backup = locate_backup(path, version)
    if _is_new(connection) or version == SCHEMA_VERSION or backup.exists():
        return
    partial = path.with_name(f".{backup.name}.{os.getpid()}")
    try:
        with closing(sqlite3.connect(partial)) as copy:
            connection.backup(copy)
            upgraded_meanwhile = _read_pragma(copy, "user_version") != version
        if not upgraded_meanwhile:
            partial.replace(backup)
    finally:
        partial.unlink(missing_ok=True)


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Retry: SQLite ignores its busy timeout here. Without WAL (network disks), the journal is as safe but slower."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _prepare_tables(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        if _is_new(connection):
            _run_statements(connection, _TABLES)
            connection.execute("INSERT INTO meta VALUES ('created_by', ?)", (__version__,))
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        elif _read_pragma(connection, "user_version") < SCHEMA_VERSION:
            _upgrade_tables(connection)
        _run_statements(connection, _FINGERPRINTS)


def _run_statements(connection: sqlite3.Connection, statements: str) -> None:
    for statement in filter(str.strip, statements.split(";")):
        connection.execute(statement)


def _upgrade_tables(connection: sqlite3.Connection) -> None:
    """Only add columns: an older version that has the file open can keep writing."""
    added = _list_added(_read_pragma(connection, "user_version"))
    for name, column in added.items():
        connection.execute(f"ALTER TABLE evaluations ADD COLUMN {name} {column.sql_type}")
    values = ", ".join(f"{name} = {_read_json(column)}" for name, column in added.items())
    connection.execute(f"UPDATE evaluations AS e SET {values}")
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def _list_added(version: int) -> dict[str, Column]:
    return {name: column for name, column in COLUMNS.items() if column.since > version}


def _read_json(column: Column) -> str:
    """Return SQL for a column that an older schema lacks. JSON with infinities, which SQLite refuses, gives NULL."""
    value = f"(SELECT json_extract(d.evaluation, '$.{column.older_path or column.path}') FROM main.details d"
    value += " WHERE d.evaluation_id = e.id AND json_valid(d.evaluation))"
    return value if column.is_optional else f"coalesce({value}, '')"


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite may already have rolled back (full disk); the first error is the one to report.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _read_pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _read_writer(connection: sqlite3.Connection) -> str:
    try:
        row = connection.execute("SELECT value FROM meta WHERE key = 'created_by'").fetchone()
    except sqlite3.OperationalError:
        return "(unknown version)"
    return str(row[0]) if row else "(unknown version)"
