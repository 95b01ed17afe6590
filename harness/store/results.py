"""Records evaluations in `results/harness.db`, and reads them or flat rows. sqlite3 errors become StoreError."""

import fcntl
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import IO, Any, Self

from harness.copies import take_fingerprint
from harness.domain import FILE_RUN, Evaluation, StoreError, Subject
from harness.domain.errors import suggest
from harness.domain.files import explain_failure, raising
from harness.store.columns import COLUMNS, ResultRow, list_compared
from harness.store.queries import ResultFilter, build_query, check_columns, list_against, order_by
from harness.store.schema import connect_reader, connect_writer, transaction
from harness.store.serialization import (
    EvidenceRow,
    compress_text,
    decode_evaluation,
    decode_evidence,
    decompress_text,
    encode_columns,
    encode_environment,
    encode_evaluation,
    identity_of,
)

__all__ = ["DATABASE_NAME", "EvidenceRow", "ResultFilter", "ResultStore", "StoredEvaluation"]

DATABASE_NAME = "harness.db"
EVERYTHING = ResultFilter()
EXACT, PART = "exact", "part"

_WHOLE = (
    "e.id, d.evaluation, v.entries, l.log FROM evaluations e JOIN details d ON d.evaluation_id = e.id "
    "JOIN environments v ON v.digest = d.environment LEFT JOIN build_logs l ON l.evaluation_id = e.id"
)
# Python writes infinities, which are not JSON: records that SQLite cannot parse are returned whole.
_EVIDENCE = (
    "e.id, e.problem_digest, d.environment, CASE WHEN json_valid(d.evaluation) "
    "THEN json_extract(d.evaluation, '$.phases_s', '$.roofline', '$.plausibility') ELSE d.evaluation END "
    "FROM evaluations e JOIN details d ON d.evaluation_id = e.id"
)
_UNUSED = "NOT IN (SELECT candidate FROM evaluations)"
_REMOVE_UNUSED = (
    f"DELETE FROM candidates WHERE digest {_UNUSED}",
    f"DELETE FROM fingerprints WHERE candidate {_UNUSED}",
    "DELETE FROM environments WHERE digest NOT IN (SELECT environment FROM details)",
)
_FLAT = ", ".join(f"e.{name}" for name in COLUMNS) + " FROM evaluations e"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvaluation:
    id: int
    evaluation: Evaluation


class ResultStore:
    """Safe for several writing processes and for threads, not across a fork."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, against: str | None = None) -> None:
        self.path = path
        self._against = against
        self._connection = connection
        self._lock = Lock()

    @classmethod
    def open(cls, results_dir: Path, *, read_only: bool = False) -> Self:
        """Create folder and file unless `read_only`; without a file, a read-only store is empty. Raises StoreError."""
        path = results_dir / DATABASE_NAME
        with _store_errors(path, "open"):
            if read_only:
                return cls(connect_reader(path), path)
            results_dir.mkdir(parents=True, exist_ok=True)
            return cls(connect_writer(path), path)

    @classmethod
    def open_against(cls, results_dir: Path, baseline: str | None) -> Self:
        """Open a read-only store whose evaluations are against another baseline. Raises StoreError and UsageError."""
        path = results_dir / DATABASE_NAME
        with _store_errors(path, "open"):
            store = cls(connect_reader(path), path, against=baseline)
            try:
                if baseline is not None:
                    list_against(store._connection, baseline)
            except BaseException:
                store.close()
                raise
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def record(self, evaluation: Evaluation, source: str | None = None) -> int:
        """Commit durably and return the id."""
        return self.record_all([(evaluation, source)])[0]

    def record_all(self, evaluations: Iterable[tuple[Evaluation, str | None]]) -> tuple[int, ...]:
        """Commit (evaluation, source) pairs in one transaction."""
        with self._transaction():
            return tuple(self._insert(evaluation, source) for evaluation, source in evaluations)

    def remove_run(self, run: str) -> int:
        """Remove a run's evaluations and what only they refer to, in one transaction. Return their number."""
        with self._transaction():
            of_run = "IN (SELECT id FROM evaluations WHERE run = ?)"
            for table in ("build_logs", "details"):
                self._connection.execute(f"DELETE FROM {table} WHERE evaluation_id {of_run}", (run,))
            count = self._connection.execute("DELETE FROM evaluations WHERE run = ?", (run,)).rowcount
            for statement in _REMOVE_UNUSED:
                self._connection.execute(statement)
        return count

    def find(self, subject: Subject) -> StoredEvaluation | None:
        return self._read_one("e.slot = ? AND e.problem_digest = ?", (identity_of(subject), subject.problem_digest))

    def get(self, evaluation_id: int) -> StoredEvaluation | None:
        return self._read_one("e.id = ?", (evaluation_id,))

    def load_all(self, where: ResultFilter = EVERYTHING, *, history: bool = False) -> Iterator[StoredEvaluation]:
        """Yield the latest evaluation of each identity by id, or all with `history`."""
        query, values = build_query(_WHOLE, where, history=history, order="e.id")
        for row in self._read(query, values):
            yield self._decode(*row)

    def rows(
        self, where: ResultFilter = EVERYTHING, *, sort: str = "id", limit: int | None = None, history: bool = False
    ) -> Iterator[ResultRow]:
        """`sort` is a column (`-speedup` for descending). Raises UsageError."""
        query, values = build_query(_FLAT, where, history=history, order=order_by(sort))
        for row in self._read(f"{query} LIMIT ?", (*values, -1 if limit is None else limit)):
            yield ResultRow._make(row)

    def evidence(self, where: ResultFilter = EVERYTHING) -> Iterator[EvidenceRow]:
        for row in self._read(*build_query(_EVIDENCE, where, history=False, order="e.id")):
            yield decode_evidence(*row)

    def environments(self) -> dict[str, tuple[tuple[str, str], ...]]:
        rows = self._read("SELECT digest, entries FROM environments", ())
        return {digest: tuple((name, str(value)) for name, value in json.loads(text)) for digest, text in rows}

    def values(
        self, columns: Sequence[str], where: ResultFilter = EVERYTHING, *, history: bool = False
    ) -> Iterator[tuple[Any, ...]]:
        """Raises UsageError for unknown names."""
        check_columns(columns)
        chosen = ", ".join(f"e.{name}" for name in columns)
        yield from self._read(*build_query(f"{chosen} FROM evaluations e", where, history=history, order="e.id"))

    def problem_digests(self) -> dict[int, str]:
        return dict(self._read("SELECT id, problem_digest FROM evaluations", ()))

    def count(self, where: ResultFilter = EVERYTHING, *, history: bool = True) -> int:
        query, values = build_query("count(*) FROM evaluations e", where, history=history, order="1")
        return int(next(self._read(query, values))[0])

    def source(self, candidate_digest: str) -> str | None:
        rows = list(self._read("SELECT source FROM candidates WHERE digest = ?", (candidate_digest,)))
        try:
            return decompress_text(rows[0][0]) if rows else None
        except (zlib.error, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path}: the source of candidate {candidate_digest} is damaged: {error}") from error

    def find_first(self, values: Sequence[str]) -> ResultRow | None:
        marks = ", ".join("?" * len(values))
        alike = f"SELECT candidate FROM fingerprints WHERE kind = ? AND value IN ({marks})"
        text = f"SELECT {_FLAT} WHERE e.candidate IN ({alike}) AND e.run != ? ORDER BY e.id LIMIT 1"
        rows = list(self._read(text, (PART, *values, FILE_RUN)))
        return ResultRow._make(rows[0]) if rows else None

    def list_without_fingerprint(self) -> list[str]:
        query = "SELECT digest FROM candidates WHERE digest NOT IN (SELECT candidate FROM fingerprints WHERE kind = ?)"
        return [digest for (digest,) in self._read(query, (EXACT,))]

    def complete_fingerprints(self, candidates: Sequence[str]) -> None:
        """Use many transactions, since other processes write meanwhile. Skip damaged sources."""
        for candidate in candidates:
            try:
                source = self.source(candidate) or ""
            except StoreError:
                source = ""
            with self._transaction():
                self._add_fingerprints(candidate, source)

    def programs(self) -> dict[str, str]:
        """Map each candidate's digest to that without layout and comments. Empty for files without fingerprints."""
        if not list(self._read("SELECT 1 FROM main.sqlite_master WHERE name = 'fingerprints'", ())):
            return {}
        return dict(self._read("SELECT candidate, value FROM fingerprints WHERE kind = ?", (EXACT,)))

    def _insert(self, evaluation: Evaluation, source: str | None) -> int:
        columns = encode_columns(evaluation)
        marks = ", ".join("?" * len(columns))
        execute = self._connection.execute
        cursor = execute(f"INSERT INTO evaluations ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values()))
        evaluation_id = int(cursor.lastrowid or 0)
        digest, entries = encode_environment(evaluation.environment)
        execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", (digest, entries))
        execute("INSERT INTO details VALUES (?, ?, ?)", (evaluation_id, digest, encode_evaluation(evaluation)))
        if evaluation.build is not None and evaluation.build.log:
            execute("INSERT INTO build_logs VALUES (?, ?)", (evaluation_id, compress_text(evaluation.build.log)))
        if source is not None and evaluation.subject.candidate_digest:
            candidate = (evaluation.subject.candidate_digest, compress_text(source))
            execute("INSERT OR IGNORE INTO candidates VALUES (?, ?)", candidate)
            self._add_fingerprints(evaluation.subject.candidate_digest, source)
        return evaluation_id

    def _add_fingerprints(self, candidate: str, source: str) -> None:
        query = "SELECT 1 FROM fingerprints WHERE candidate = ? AND kind = ?"
        if self._connection.execute(query, (candidate, EXACT)).fetchone() is not None:
            return

        fingerprint = take_fingerprint(source)
        rows = [(fingerprint.exact, EXACT, candidate), *((value, PART, candidate) for value in fingerprint.values)]
        self._connection.executemany("INSERT OR IGNORE INTO fingerprints VALUES (?, ?, ?)", rows)

    def _read_one(self, condition: str, values: tuple[str | float, ...]) -> StoredEvaluation | None:
        query = f"SELECT {_WHOLE} WHERE {condition} ORDER BY e.id DESC LIMIT 1"
        rows = list(self._read(query, values))  # a partly consumed generator would outlive the connection
        return self._decode(*rows[0]) if rows else None

    def _read(self, query: str, values: tuple[str | float, ...]) -> Iterator[Any]:
        with _store_errors(self.path, "read"):
            yield from self._connection.execute(query, values)

    def _decode(self, evaluation_id: int, text: str, environment: str, log: bytes | None) -> StoredEvaluation:
        try:
            build_log = "" if log is None else decompress_text(log)
            evaluation = decode_evaluation(text, environment=environment, build_log=build_log)
        except (AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
            raise StoreError(
                f"{self.path}: evaluation {evaluation_id} is damaged or from another version ({error!r}); "
                "the other rows are not affected: evaluate its candidate again with --again"
            ) from error
        if self._against is not None:
            evaluation = evaluation.against(self._against)
        return StoredEvaluation(id=evaluation_id, evaluation=evaluation)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, _store_errors(self.path, "write"), transaction(self._connection):
            yield


@contextmanager
def _store_errors(path: Path, action: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        advice = _advice_for(str(error))
        raise StoreError(f"cannot {action} {path}: {error}; {advice}. Earlier evaluations are unaffected") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"cannot {action} {path}: {error}. It is damaged or not an SQLite file: "
            "move it away (or restore a copy), or choose another folder with --results-dir"
        ) from error
    except OSError as error:
        raise StoreError(
            f"cannot {action} {path}: {explain_failure(error)}; choose another folder with --results-dir"
        ) from error


def _advice_for(message: str) -> str:
    if "full" in message or "disk I/O" in message:
        return "free disk space and run the same command again"
    if "locked" in message:
        return "another process holds a lock: stop it or wait, then run the same command again"
    if "readonly" in message or "unable to open" in message:
        return "check the permissions of the file and its folder, or choose another with --results-dir"
    return "check the file and its disk"


def explain_no_match(store: ResultStore, where: ResultFilter) -> str:
    if not store.count():
        return f"no evaluations in {store.path.parent} yet: `harness run --suite core --model MODEL` makes some"
    texts = ("run", "model", "problem", "suite", "workload", "device", "outcome")
    wanted = [(name, value) for name in texts if (value := getattr(where, name)) is not None]
    if where.condition is not None:
        wanted += list_compared(where.condition)
    for column, value in wanted:
        known = sorted({str(one) for (one,) in store.values((column,)) if one is not None})
        if not any(fnmatchcase(one, value) for one in known):
            return f"no {column} {value!r} in {store.path}; {suggest(value, known)}"
    return f"no evaluation in {store.path} matches all filters; remove one, or list all with `harness results`"


LOCK_FILE = ".evaluating"


class Reservations:
    """Open at most one per process and folder: POSIX drops all locks when any descriptor of the file is closed."""

    def __init__(self, results_dir: Path) -> None:
        self.path = results_dir / LOCK_FILE
        with raising(StoreError, f"write {self.path}"):
            self._file: IO[bytes] = self.path.open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @contextmanager
    def hold(self, subject: Subject, emulated_gpu: str) -> Iterator[bool]:
        """Yield False if another process holds the reservation; do not wait."""
        text = f"{identity_of(subject)} {subject.problem_digest} {emulated_gpu}"
        offset = int(sha256(text.encode()).hexdigest()[:15], 16)
        if not self._lock(offset):
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, offset, os.SEEK_SET)

    def _lock(self, offset: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset, os.SEEK_SET)
        except (BlockingIOError, PermissionError):  # POSIX allows either errno for a held lock
            return False
        except OSError as error:
            raise StoreError(
                f"cannot lock {self.path}: {explain_failure(error)}. Without locks two processes may evaluate "
                "the same candidate: choose a folder on a file system with locks with --results-dir"
            ) from error
        return True
