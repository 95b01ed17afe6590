"""Evaluator processes, as seen by the executor."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from typing import Any

from harness.domain import DeviceError, Evaluation
from harness.executors.device_pool import DeviceLost, Job
from harness.executors.evaluator_process import Done, Lost, Ready, Start, Waiting, Work
from harness.executors.executor import DeviceFacts
from harness.problems.watched_process import ProcessEnded, WatchedProcess
from harness.sandbox.forkserver import EXPANDABLE_SEGMENTS

SHORT_WAIT_S = 2.0
END_S = 5.0  # for a process to end its children
_RUN = "from harness.executors.evaluator_process import main; main()"


class EvaluatorProcess:
    """An `OpenDevice`; call `wait_ready` first."""

    def __init__(
        self, name: str, start: Start, *, cores: Collection[int], visible: str | None, expects_many: bool = False
    ) -> None:
        """`visible`: its CUDA_VISIBLE_DEVICES."""
        self._name, self._expects_many = name, expects_many
        self._start = start
        self._chip = ""
        self.build_counts: dict[str, int] = {}
        self._waits_for, self._waits_since_s = "", 0.0
        self._process = _start_process(cores, visible)

    def wait_ready(self) -> None:
        """Raises DeviceError."""
        try:
            self._send(self._start)
            ready = self._receive()
        except DeviceLost as error:
            self.close()
            raise DeviceError(str(error)) from error
        assert isinstance(ready, Ready)
        self._chip = ready.chip

    @property
    def facts(self) -> DeviceFacts:
        return DeviceFacts(name=self._name, chip=self._chip)

    @property
    def waits_for(self) -> str:
        """The reason of a wait that others must end, after a few seconds of it; else ""."""
        return self._waits_for if time.monotonic() - self._waits_since_s > SHORT_WAIT_S else ""

    def expect_many(self) -> None:
        self._expects_many = True

    def evaluate(self, job: Job) -> Evaluation:
        """Raises ReferenceStopped, too."""
        self._send(Work(task=job.task, ahead=job.ahead, expects_many=self._expects_many))
        done = self._receive()
        assert isinstance(done, Done)
        self.build_counts = done.build_counts
        return done.evaluation

    def close(self) -> None:
        """SIGINT first, so that it ends its workers."""
        self._process.interrupt(END_S)
        self._process.kill()

    def _send(self, message: Any) -> None:
        try:
            self._process.send(message)
        except ProcessEnded as error:
            raise DeviceLost(f"the evaluator process {error}") from None

    def _receive(self) -> Any:
        try:
            while isinstance(message := self._process.receive(), Waiting):
                self._waits_for, self._waits_since_s = message.reason, time.monotonic()
        except ProcessEnded as error:
            raise DeviceLost(f"the evaluator process {error}") from None
        if isinstance(message, Lost):
            raise DeviceLost(message.reason, for_good=message.for_good)
        return message


def choose_visible(index: int) -> str:
    """CUDA_VISIBLE_DEVICES for this process's GPU `index` alone."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return str(index) if shown is None else shown.split(",")[index].strip()


def _start_process(cores: Collection[int], visible: str | None) -> WatchedProcess:
    # Spinning threads would disturb timing.
    environment = {"OMP_WAIT_POLICY": "PASSIVE", **EXPANDABLE_SEGMENTS, **os.environ}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    return WatchedProcess(_RUN, [",".join(map(str, sorted(cores)))], environment)
