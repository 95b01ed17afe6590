"""Locks shared by a user's harness processes."""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

from harness.domain.files import try_lock

RETRY_S = 0.05
DEVICE_TAKEN = "another harness process, which evaluates on this device"
CORES_TAKEN = "builds or timings on these cores, perhaps of another harness process"
BUILD_TAKEN = "another build of the same extension or headers, perhaps of another harness process"
Say = Callable[[str], None]  # gets the reason of a wait when it begins, and "" when it ends
Check = Callable[[], None]  # called while waiting; may raise


def say_nothing(reason: str) -> None:
    pass


def check_nothing() -> None:
    pass


@contextmanager
def hold_device(name: str, say: Say = say_nothing, check: Check = check_nothing) -> Iterator[None]:
    with _open_lock(name) as lock:
        _wait_for(lock, DEVICE_TAKEN, say, check)
        yield


@contextmanager
def hold_to_evaluate(
    device: str, say: Say = say_nothing, check: Check = check_nothing, *, times: bool
) -> Iterator[None]:
    """`device` "" needs no lock. With `times`, `hold_cores_to_time` must follow: its holder may wait for cores."""
    with (
        hold_device(device, say, check) if device else nullcontext(),
        nullcontext() if times else hold_cores_to_build(check),
    ):
        yield


@contextmanager
def hold_cores_to_build(check: Check = check_nothing) -> Iterator[None]:
    """A shared lock; wait for waiting and running timings."""
    with _open_lock("cores") as cores:
        with _open_lock("next") as queue:
            while not try_lock(queue) or not try_lock(cores, fcntl.LOCK_SH):
                check()
                time.sleep(RETRY_S)
        yield


@contextmanager
def hold_cores_to_time(say: Say = say_nothing, check: Check = check_nothing) -> Iterator[None]:
    """An exclusive lock; wait for running builds and block new ones."""
    with _open_lock("next") as queue, _open_lock("cores") as cores:
        _wait_for(queue, CORES_TAKEN, say, check)
        _wait_for(cores, CORES_TAKEN, say, check)
        yield


def _wait_for(lock: IO[str], reason: str, say: Say, check: Check) -> None:
    if try_lock(lock):
        return
    say(reason)
    while not try_lock(lock):
        check()
        time.sleep(RETRY_S)
    say("")


def _open_lock(name: str) -> IO[str]:
    return (Path(tempfile.gettempdir()) / f"harness-{os.getuid()}-{name.replace(':', '-')}.lock").open("w")
