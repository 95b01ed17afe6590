"""A time limit for code of problem files, in any thread of this process, which that code cannot end.

A watcher thread raises an exception in the thread of an overdue step. That interrupts Python code and, in the main
thread, calls that wait, such as `time.sleep`; other native code finishes its call first.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from harness.domain import ProblemError, ReferenceTimeout

DEFAULT_LIMIT_S = 600.0
INTERRUPT = signal.SIGURG  # ignored by default
AGAIN_S = 1.0  # interval of raising it again in code that caught it


class _StepTooLong(BaseException):
    """A BaseException, so that `except Exception` in a problem file does not catch it."""


class _Watch:
    def __init__(self) -> None:
        self.limit_s = DEFAULT_LIMIT_S
        self._changed = threading.Condition()
        self._steps: dict[int, tuple[float, int, bool]] = {}  # by number: deadline, thread, whether raised
        self._numbers = itertools.count()
        self._wakes_s = float("inf")  # next wake-up of the watcher
        self._thread: threading.Thread | None = None

    def begin(self) -> int:
        _prepare_process()
        number, deadline_s = next(self._numbers), time.monotonic() + self.limit_s
        with self._changed:
            self._steps[number] = (deadline_s, threading.get_ident(), False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="reference time limit", daemon=True)
                self._thread.start()
            elif deadline_s < self._wakes_s:
                self._changed.notify()
        return number

    def end(self, number: int) -> None:
        """Called in the step's own thread; absorbs an exception that was raised too late."""
        while True:
            try:
                with self._changed:
                    step = self._steps.pop(number, None)
                break
            except _StepTooLong:
                continue
        if step is None or step[2]:
            _absorb_raised()

    def holds_thread(self) -> bool:
        """Whether a step runs in this thread."""
        return any(thread == threading.get_ident() for _, thread, _ in list(self._steps.values()))

    def _run(self) -> None:
        with self._changed:
            while True:
                now_s = time.monotonic()
                for number, (deadline_s, thread, _) in self._steps.items():
                    if deadline_s <= now_s:
                        _raise_in(thread)
                        self._steps[number] = (now_s + AGAIN_S, thread, True)
                self._wakes_s = min((deadline_s for deadline_s, *_ in self._steps.values()), default=float("inf"))
                self._changed.wait(None if self._wakes_s == float("inf") else self._wakes_s - now_s)


def _raise_in(thread: int) -> None:
    """At the thread's next Python instruction: of the signal's handler, while the main thread waits."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_StepTooLong))
    if thread == threading.main_thread().ident and callable(signal.getsignal(INTERRUPT)):
        signal.pthread_kill(thread, INTERRUPT)


def _prepare_process() -> None:
    """Once in each process."""
    if threading.current_thread() is threading.main_thread() and not callable(signal.getsignal(INTERRUPT)):
        signal.signal(INTERRUPT, lambda *_: None)
    if os._exit is not _exit:
        os._exit = _exit


_end_process, _OWNER = os._exit, os.getpid()


def _exit(status: int) -> NoReturn:
    """As `os._exit`, but in a step like `sys.exit`; processes that a step forks end as usual."""
    if os.getpid() == _OWNER and _WATCH.holds_thread():
        raise SystemExit(status)
    _end_process(status)


def _absorb_raised() -> None:
    """Raises and catches the exception here, replacing a pending one. Cancelling a pending one (NULL) makes CPython
    3.11 permanently slower and hang under a profiler.
    """
    try:
        _raise_in(threading.get_ident())
        while True:
            time.sleep(0)
    except _StepTooLong:
        return


_WATCH = _Watch()


def set_reference_limit(limit_s: float) -> None:
    """Sets the limit per step, in seconds, for this process."""
    _WATCH.limit_s = limit_s


@contextmanager
def limit_reference(step: str) -> Iterator[None]:
    """Raises ReferenceTimeout, or ProblemError if the step ends the process; `step` names the file and function."""
    limit_s, number = _WATCH.limit_s, _WATCH.begin()
    try:
        yield
    except _StepTooLong:
        raise ReferenceTimeout(
            f"{step} did not end within {limit_s:g} s; correct the file, or allow more time with --reference-timeout"
        ) from None
    except SystemExit as stop:
        raise ProblemError(
            f"{step} ends the process, with exit code {stop.code}; remove sys.exit(), exit(), quit() or os._exit()"
        ) from stop
    finally:
        _WATCH.end(number)
