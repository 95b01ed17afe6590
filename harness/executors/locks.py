"""Locks between a user's harness processes."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

RETRY_S = 0.05


@contextmanager
def hold_device(name: str) -> Iterator[None]:
    with _open_lock(name) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def hold_to_evaluate(device: str, *, times: bool) -> Iterator[None]:
    """`device` "": none is needed; `times`: `hold_cores_to_time` follows. The device comes first: a process that has it
    may wait for the cores."""
    with hold_device(device) if device else nullcontext(), nullcontext() if times else hold_cores_to_build():
        yield


@contextmanager
def hold_cores_to_build(check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Shared; waits for waiting and running timings. `check` is called meanwhile and may raise."""
    with _open_lock("cores") as cores:
        with _open_lock("next") as queue:
            while not _try_lock(queue, fcntl.LOCK_EX) or not _try_lock(cores, fcntl.LOCK_SH):
                check()
                time.sleep(RETRY_S)
        yield


@contextmanager
def hold_cores_to_time() -> Iterator[None]:
    """Exclusive: waits for running builds and blocks new ones."""
    with _open_lock("next") as queue, _open_lock("cores") as cores:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(cores, fcntl.LOCK_EX)
        yield


def _open_lock(name: str) -> IO[str]:
    return (Path(tempfile.gettempdir()) / f"harness-{os.getuid()}-{name.replace(':', '-')}.lock").open("w")


def _try_lock(lock: IO[str], kind: int) -> bool:
    """Held until the file is closed."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
