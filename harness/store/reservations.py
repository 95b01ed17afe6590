"""Which evaluations are under way, over all processes that write into one results folder.

A reservation is a lock on one byte of `results/.evaluating`, at an offset made of what is evaluated. The kernel
releases the locks of a process however it ends, so a killed one leaves none behind.
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
from harness.store.serialization import slot_of

LOCK_FILE = ".evaluating"


class Reservations:
    """The reservations of this process in one results folder. A process opens them once at a time: such locks are lost
    when any other open file of the same path is closed."""

    def __init__(self, results_dir: Path) -> None:
        self.path = results_dir / LOCK_FILE
        try:
            self._file: IO[bytes] = self.path.open("ab")
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @contextmanager
    def hold(self, subject: Subject, emulated_gpu: str) -> Iterator[bool]:
        """Reserves one evaluation, or gives False if another process has. Does not wait."""
        offset = _choose_offset(subject, emulated_gpu)
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
        except (BlockingIOError, PermissionError):  # the two errors by which POSIX says that it is taken
            return False
        except OSError as error:
            raise StoreError(
                f"cannot lock {self.path}: {error.strerror or error}. Without locks two processes evaluate the same: "
                "choose a folder on a disk that has file locks with --results-dir"
            ) from error
        return True


def _choose_offset(subject: Subject, emulated_gpu: str) -> int:
    text = f"{slot_of(subject)} {subject.problem_digest} {emulated_gpu}"
    return int(sha256(text.encode()).hexdigest()[:15], 16)
