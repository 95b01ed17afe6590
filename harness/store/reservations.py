"""Reserves running evaluations across all processes that write to one results folder.

A reservation is a lock on one byte of `results/.evaluating`, at an offset hashed from the subject; Linux releases it
when the process ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from harness.domain import StoreError, Subject
from harness.domain.files import explain_failure, raising
from harness.store.serialization import identity_of

LOCK_FILE = ".evaluating"


class Reservations:
    """Open at most one per process and folder: POSIX drops all locks when any descriptor of the file is closed."""

    def __init__(self, results_dir: Path) -> None:
        self.path = results_dir / LOCK_FILE
        with raising(StoreError, f"write {self.path}"):
            self._file: IO[bytes] = self.path.open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
