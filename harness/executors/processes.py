"""Evaluator processes, as seen by the executor."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import harness
from harness.domain import DeviceError, Evaluation
from harness.executors.device_pool import DeviceLost, Job
from harness.executors.evaluator_process import Done, Lost, Ready, Start, Waiting, Work
from harness.executors.executor import DeviceFacts
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
        self._line, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = _start_process(theirs, cores, visible)

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
        self._send(Work(task=job.task, ahead=job.ahead, expects_many=self._expects_many))
        done = self._receive()
        assert isinstance(done, Done)
        self.build_counts = done.build_counts
        return done.evaluation

    def close(self) -> None:
        """SIGINT first, so that it ends its workers."""
        with suppress(subprocess.TimeoutExpired):
            self._process.send_signal(signal.SIGINT)
            self._process.wait(END_S)
        self._process.kill()
        self._process.wait()

    def _send(self, message: Any) -> None:
        try:
            self._line.send(message)
        except OSError:
            raise DeviceLost(self._describe_end()) from None

    def _receive(self) -> Any:
        try:
            while isinstance(message := self._line.recv(), Waiting):
                self._waits_for, self._waits_since_s = message.reason, time.monotonic()
        except (EOFError, OSError):
            raise DeviceLost(self._describe_end()) from None
        if isinstance(message, Lost):
            raise DeviceLost(message.reason, for_good=message.for_good)
        return message

    def _describe_end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        code = self._process.poll()
        if code is not None and code < 0:
            return f"the evaluator process was ended by {signal.Signals(-code).name}"
        return f"the evaluator process ended with {code}"


def choose_visible(index: int) -> str:
    """CUDA_VISIBLE_DEVICES for this process's GPU `index` alone."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return str(index) if shown is None else shown.split(",")[index].strip()


def _start_process(line: Connection, cores: Collection[int], visible: str | None) -> subprocess.Popen[bytes]:
    root = str(Path(harness.__file__).resolve().parents[1])
    # Spinning threads would disturb timing.
    environment = {"OMP_WAIT_POLICY": "PASSIVE", **EXPANDABLE_SEGMENTS, **os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    arguments = [str(line.fileno()), ",".join(map(str, sorted(cores)))]
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, *arguments], env=environment, pass_fds=(line.fileno(),),
        stdin=subprocess.DEVNULL, stdout=sys.__stderr__, start_new_session=True,
    )  # fmt: skip
