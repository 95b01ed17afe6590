"""Locks between all harness processes of one user on this machine: one evaluation at a time on a device, and no build
beside a timing on the same cores."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LOOK_AGAIN_S = 0.05


@contextmanager
def hold_device(name: str) -> Iterator[None]:
    """One measurement at a time on a device, whichever process makes it: two at once would disturb each other."""
    with _open_lock(name) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def hold_cores_to_build(check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Together with other builds, once no timing waits or runs. `check` is called while this waits, and may raise."""
    with _open_lock("cores") as cores:
        with _open_lock("next") as queue:
            while not _try_lock(queue, fcntl.LOCK_EX) or not _try_lock(cores, fcntl.LOCK_SH):
                check()
                time.sleep(LOOK_AGAIN_S)
        yield


@contextmanager
def hold_cores_to_time() -> Iterator[None]:
    """Alone: waits until the builds that run have ended, and none begins meanwhile."""
    with _open_lock("next") as queue, _open_lock("cores") as cores:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(cores, fcntl.LOCK_EX)
        yield


def _open_lock(name: str) -> IO[str]:
    return (Path(tempfile.gettempdir()) / f"harness-{os.getuid()}-{name.replace(':', '-')}.lock").open("w")


def _try_lock(lock: IO[str], kind: int) -> bool:
    """It is held until the file is closed."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
