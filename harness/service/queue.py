"""Stores a service's tasks in SQLite: each survives `kill -9` and ends with one verdict. One process a folder."""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import time
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from harness.domain import Baseline, Fidelity, HarnessError, Language, Precision, StoreError, UsageError, WorkloadName
from harness.domain.files import raising, try_lock
from harness.store.schema import transaction

PRIORITIES = {"low": 0, "normal": 1, "high": 2}


class ProgramAndProblem(BaseModel):
    """The program is `candidate` or in `completion`; the problem is `problem` (of `suite`) or `reference`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    candidate: str | None = None
    completion: str | None = None
    problem: str | None = None
    suite: str = "core"
    reference: str | None = None
    language: Language | None = Field(default=None, description="Default: detected from the program.")
    workload: WorkloadName | None = Field(default=None, description="Default: full; if emulated, small or reduced.")
    baseline: Baseline = "eager"
    dtype: Precision | None = Field(default=None, description="Of inputs and weights. Default: as in the problem.")
    requires_kernel: bool | None = Field(
        default=None,
        description="Reject programs without a custom kernel. Default: as the suite; true for a reference.",
    )


class Submission(ProgramAndProblem):
    fidelity: Fidelity = "full"

    @property
    def digest(self) -> str:
        return sha256(self.encode().encode()).hexdigest()[:32]

    def encode(self) -> str:
        record = self.model_dump()
        if self.dtype is None:  # equal to stored requests from before there were dtypes
            del record["dtype"]
        return json.dumps(record, sort_keys=True, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Self:
        return cls.model_validate_json(text)


State = Literal["queued", "running", "done", "failed", "invalid"]
UNFINISHED: tuple[State, ...] = ("queued", "running")
WITHOUT_VERDICT: tuple[State, ...] = ("failed", "invalid")
LOCK_NAME, DATABASE_NAME = "service.lock", "tasks.db"
SCHEMA_VERSION = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client TEXT NOT NULL, task TEXT NOT NULL, digest TEXT NOT NULL, request BLOB NOT NULL, priority INTEGER NOT NULL,
    state TEXT NOT NULL, accepted_at REAL NOT NULL, started_at REAL, finished_at REAL,
    verdict BLOB, error TEXT NOT NULL DEFAULT '',
    UNIQUE (client, task)
);
CREATE INDEX IF NOT EXISTS tasks_by_state ON tasks (state, client);
CREATE INDEX IF NOT EXISTS tasks_waiting ON tasks (priority DESC, number) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS tasks_finished ON tasks (finished_at) WHERE finished_at IS NOT NULL;
"""
_ENTRY = "number, client, task, digest, priority, state, accepted_at, started_at, finished_at, error"
_FIND = f"SELECT {_ENTRY} FROM tasks WHERE client = ? AND task = ?"


class QueueFull(HarnessError):
    pass


class TaskConflict(HarnessError):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`queued` limits tasks of all clients; `per_client` limits unfinished tasks of one client."""

    queued: int
    per_client: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    client: str
    task: str
    submission: Submission
    priority: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """Times since the epoch. `failed`: the harness's fault, requests queue again; `invalid`: it cannot be evaluated."""

    number: int
    client: str
    task: str
    digest: str
    priority: int
    state: State
    accepted_at: float
    started_at: float | None
    finished_at: float | None
    error: str

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED


class TaskQueue:
    """Thread-safe. Commits survive the end of the process, but the latest may be lost in a power failure."""

    def __init__(self, connection: sqlite3.Connection, reader: sqlite3.Connection, lock: int) -> None:
        self._connection = connection
        self._reader = reader
        self._folder_lock = lock
        self._lock = Lock()
        self._reading = Lock()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Queue tasks again that ran at the last end. Raises StoreError; UsageError if the folder is used."""
        with raising(StoreError, f"open the queue in {folder}", "; choose another folder", also=(sqlite3.Error,)):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = _lock_folder(folder)
            path = folder / DATABASE_NAME
            connection = _connect(path)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA_VERSION):
                raise StoreError(
                    f"{path} has schema {version}, this harness reads {SCHEMA_VERSION}: use another folder"
                )
            connection.executescript(f"{_TABLES} PRAGMA user_version={SCHEMA_VERSION};")
            connection.execute("UPDATE tasks SET state = 'queued', started_at = NULL WHERE state = 'running'")
        return cls(connection, _connect(path), lock)

    def close(self) -> None:
        with self._lock, self._reading:
            self._connection.close()
            self._reader.close()
        os.close(self._folder_lock)

    def add(self, tasks: Sequence[NewTask], limits: Limits) -> list[tuple[Entry, bool]]:
        """Add all or none; return each, True if queued now, also again. Raises QueueFull, TaskConflict."""
        with self._transaction():
            added = [self._add(task) for task in tasks]
            if any(is_new for _, is_new in added):
                self._require_room(tasks[0].client, limits)
        return added

    def take(self, count: int) -> list[tuple[Entry, Submission]]:
        chosen = "SELECT number FROM tasks WHERE state = 'queued' ORDER BY priority DESC, number LIMIT ?"
        with self._transaction():
            numbers = [number for (number,) in self._connection.execute(chosen, (count,)).fetchall()]
            return [self._start(number) for number in numbers]

    def finish(self, number: int, verdict: str) -> None:
        self._end(number, "done", zlib.compress(verdict.encode(), 1), "")

    def fail(self, number: int, error: str, record: str | None = None, *, is_lasting: bool = False) -> None:
        packed = None if record is None else zlib.compress(record.encode(), 1)
        storable = error.encode("utf-8", "replace").decode()  # lone surrogates become ?
        self._end(number, "invalid" if is_lasting else "failed", packed, storable)

    def find(self, client: str, task: str) -> Entry | None:
        rows = self._read(_FIND, (client, task))
        return Entry(*rows[0]) if rows else None

    def read_verdict(self, number: int) -> str | None:
        rows = self._read("SELECT verdict FROM tasks WHERE number = ?", (number,))
        return zlib.decompress(rows[0][0]).decode() if rows and rows[0][0] is not None else None

    def position(self, entry: Entry) -> int | None:
        """Return the number of queued tasks that go first; None for a task that does not wait."""
        if entry.state != "queued":
            return None
        query = "SELECT count(*) FROM tasks WHERE state = 'queued' AND (priority > ? OR priority = ? AND number < ?)"
        return int(self._read(query, (entry.priority, entry.priority, entry.number))[0][0])

    def count(self) -> dict[State, int]:
        counts: dict[State, int] = {"queued": 0, "running": 0, "done": 0, "failed": 0, "invalid": 0}
        return counts | dict(self._read("SELECT state, count(*) FROM tasks GROUP BY state", ()))

    def delete(self, client: str, task: str) -> State | None:
        """Return the deleted task's state; running tasks stay."""
        with self._transaction():
            query = "SELECT state FROM tasks WHERE client = ? AND task = ?"
            row = self._connection.execute(query, (client, task)).fetchone()
            if row is not None and row[0] != "running":
                self._connection.execute("DELETE FROM tasks WHERE client = ? AND task = ?", (client, task))
        return None if row is None else row[0]

    def delete_finished(self, before: float) -> int:
        with self._transaction():
            return self._connection.execute("DELETE FROM tasks WHERE finished_at < ?", (before,)).rowcount

    def _add(self, task: NewTask) -> tuple[Entry, bool]:
        digest = task.submission.digest
        row = self._connection.execute(_FIND, (task.client, task.task)).fetchone()
        if row is not None and row[3] != digest:
            raise TaskConflict(f"task {task.task} was submitted before with another program or other settings")
        if row is None:
            insert = "INSERT INTO tasks (client, task, digest, request, priority, state, accepted_at)"
            request = zlib.compress(task.submission.encode().encode(), 1)
            values = (task.client, task.task, digest, request, task.priority, "queued", time())
            self._connection.execute(f"{insert} VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        elif row[5] in WITHOUT_VERDICT:
            again = "state = 'queued', started_at = NULL, finished_at = NULL, verdict = NULL, error = ''"
            self._connection.execute(f"UPDATE tasks SET {again} WHERE number = ?", (row[0],))
        else:
            return Entry(*row), False
        return Entry(*self._connection.execute(_FIND, (task.client, task.task)).fetchone()), True

    def _require_room(self, client: str, limits: Limits) -> None:
        queued = self._connection.execute("SELECT count(*) FROM tasks WHERE state = 'queued'").fetchone()[0]
        if queued > limits.queued:
            raise QueueFull(f"the queue is full: {limits.queued} tasks wait")
        query = "SELECT count(*) FROM tasks WHERE state IN ('queued', 'running') AND client = ?"
        if self._connection.execute(query, (client,)).fetchone()[0] > limits.per_client:
            raise QueueFull(f"{client} has {limits.per_client} unfinished tasks, which is the limit for one client")

    def _start(self, number: int) -> tuple[Entry, Submission]:
        execute = self._connection.execute
        execute("UPDATE tasks SET state = 'running', started_at = ? WHERE number = ?", (time(), number))
        *row, request = execute(f"SELECT {_ENTRY}, request FROM tasks WHERE number = ?", (number,)).fetchone()
        return Entry(*row), Submission.decode(zlib.decompress(request).decode())

    def _end(self, number: int, state: State, verdict: bytes | None, error: str) -> None:
        change = "UPDATE tasks SET state = ?, verdict = ?, error = ?, finished_at = ? WHERE number = ?"
        with self._transaction():
            self._connection.execute(f"{change} AND state = 'running'", (state, verdict, error, time(), number))

    def _read(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reading:
            return self._reader.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, transaction(self._connection):
            yield


def _lock_folder(folder: Path) -> int:
    lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not try_lock(lock):
        os.close(lock)
        message = f"another service uses the queue in {folder}: stop it, or choose another folder with --queue-dir"
        raise UsageError(message)
    return lock


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection
