"""Runs the programs of a launch one at a time; a program that waits for another's memory lets others run.

Each waiting program keeps its own thread; only one thread runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import numpy as np

STACK_BYTES = 1 << 20


class OtherProgramFailed(RuntimeError): ...


class Turns:
    def __init__(self, run_next: Callable[[], bool]) -> None:
        """`run_next` runs the next program and returns False if none is left."""
        self._run_next = run_next
        self._waiting: deque[threading.Event] = deque()
        self._error: BaseException | None = None
        self._all_started = False

    def run(self) -> None:
        """Raises the first error of a program."""
        self._work()
        while self._waiting:
            self._wait(self._waiting.popleft().set)
        if self._error is not None:
            raise self._error

    def give_away(self) -> None:
        """Let the next program run, or the one that has waited longest."""
        if not self._all_started:
            self._wait(self._start_thread)
        elif self._waiting:
            self._wait(self._waiting.popleft().set)
        if self._error is not None:
            raise OtherProgramFailed("another program of this launch failed")

    def _wait(self, hand_over: Callable[[], None]) -> None:
        turn = threading.Event()
        self._waiting.append(turn)
        hand_over()
        turn.wait()

    def _work(self) -> None:
        try:
            while self._error is None and self._run_next():
                pass
            self._all_started = True
        except BaseException as error:  # noqa: BLE001 - raised by the thread of the launch
            self._error = self._error or error

    def _start_thread(self) -> None:
        before = threading.stack_size(STACK_BYTES)
        try:
            threading.Thread(target=self._work_in_thread, daemon=True).start()
        finally:
            threading.stack_size(before)

    def _work_in_thread(self) -> None:
        with np.errstate(all="ignore"):
            self._work()
        self._waiting.popleft().set()
