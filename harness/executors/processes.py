"""Controls evaluator processes for the executor."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from functools import partial
from typing import Any

from harness.domain import DeviceError, Evaluation, WireError
from harness.domain.build import GOING_ON, LOCKED, PRECOMPILING
from harness.executors.clients import sandbox
from harness.executors.device_pool import DeviceLost, Job
from harness.executors.evaluator_process import (
    END_S,
    LEAST_BYTES,
    MOST_BYTES,
    Assignment,
    Builds,
    Done,
    Lost,
    Ready,
    Start,
    Waiting,
    decode_answer,
)
from harness.problems.watched_process import ProcessEnded, WatchedProcess
from harness.sandbox.forkserver import EXPANDABLE_SEGMENTS
from harness.sandbox.worker_process import OutputTail

SHORT_WAIT_S = 2.0
PAUSE_S = 0.05
SHOWN = 500  # characters of what a sandboxed process printed
_RUN = "from harness.executors.evaluator_process import main; main()"


class EvaluatorProcess:
    """Call `wait_ready` first. Do not trust a sandboxed process after its first evaluation: see `OwnedDevice`."""

    def __init__(self, start: Start, *, cores: Collection[int], visible: str | None) -> None:
        self._start = start
        self.chip = self.lock = ""
        self.build_counts: dict[str, int] = {}
        self._precompiled_s = 0.0
        self._precompiles_since_s: float | None = None
        self._waits_for, self._waits_since_s = "", 0.0
        self._printed_bytes = 0
        self._output = OutputTail(self._note_printed) if start.is_sandboxed else None
        self._process = _start_process(start, cores, visible, self._output)

    def wait_ready(self) -> None:
        """Raises DeviceError."""
        try:
            self._send(self._start)
            ready = self._receive()
        except DeviceLost as error:
            self.close()
            raise DeviceError(str(error)) from error
        assert isinstance(ready, Ready)
        self.chip, self.lock = ready.chip, ready.lock

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def waits_for(self) -> str:
        """The reason for waiting and its duration, after a few seconds; otherwise ""."""
        for_s = time.monotonic() - self._waits_since_s
        return f"{self._waits_for} for {for_s:.0f} s" if self._waits_for and for_s > SHORT_WAIT_S else ""

    @property
    def precompiling_s(self) -> float:
        """How long it has made shared headers, or waited for them, by its own account."""
        since_s = self._precompiles_since_s
        return self._precompiled_s + (0.0 if since_s is None else time.monotonic() - since_s)

    def evaluate(self, job: Job) -> Evaluation:
        """Raises DeviceLost and ReferenceStopped."""
        self._send(Assignment(task=job.task, ahead=job.ahead, upcoming=job.upcoming))
        done = self._receive()
        if not isinstance(done, Done):
            raise DeviceLost("the evaluator process sent no evaluation")
        return done.evaluation

    def kill(self) -> None:
        """May be called from any thread. Killing a sandbox ends all processes inside."""
        self._process.kill()

    def close(self) -> None:
        if self._output is None:
            self._process.end(END_S)
        self._process.kill()
        self.build_counts = {name: count for name, count in self.build_counts.items() if name not in GOING_ON}
        if self._output is not None:
            self._output.await_end(END_S)

    def _note_printed(self, size_bytes: int) -> None:
        """Read slowly, since the output of an endless loop would occupy this process."""
        self._printed_bytes += size_bytes
        if self._printed_bytes > MOST_BYTES:
            time.sleep(PAUSE_S)

    def _send(self, message: Any) -> None:
        try:
            self._process.send(message)
        except ProcessEnded as error:
            raise self._explain(error) from None

    def _receive(self) -> Ready | Done:
        left_bytes = MOST_BYTES  # one that is not trusted could occupy this process
        try:
            while left_bytes > 0:
                data = self._process.receive_bytes(left_bytes)
                left_bytes -= max(len(data), LEAST_BYTES)
                message = decode_answer(data)
                if isinstance(message, Lost):
                    raise DeviceLost(message.reason, for_good=message.for_good, is_reported=True)
                if isinstance(message, Ready | Done):
                    return message
                self._note(message)
        except ProcessEnded as error:
            raise self._explain(error) from None
        except WireError as error:
            raise DeviceLost(f"the evaluator process cannot be believed: {error}") from error
        raise DeviceLost("the evaluator process sent too much")

    def _note(self, message: Waiting | Builds) -> None:
        if isinstance(message, Builds):
            self.build_counts, self._precompiled_s = message.counts, self.precompiling_s
            waits = message.counts.get(PRECOMPILING, 0) + message.counts.get(LOCKED, 0) > 0
            self._precompiles_since_s = time.monotonic() if waits else None
        else:
            self._waits_for, self._waits_since_s = message.reason, time.monotonic() - message.for_s

    def _explain(self, error: ProcessEnded) -> DeviceLost:
        printed = self._output.text()[-SHOWN:] if self._output is not None else ""
        return DeviceLost(f"the evaluator process {error}" + (f"; it printed: {printed}" if printed else ""))


def choose_visible(index: int) -> str:
    """Return CUDA_VISIBLE_DEVICES for this process's GPU `index` alone."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return str(index) if shown is None else shown.split(",")[index].strip()


def _start_process(
    start: Start, cores: Collection[int], visible: str | None, output: OutputTail | None
) -> WatchedProcess:
    """Use a sandbox if there is an `output`: the program could overwrite a file that is the service's own output."""
    # Spinning threads would disturb timing.
    own = {"OMP_WAIT_POLICY": "PASSIVE", **EXPANDABLE_SEGMENTS}
    chosen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    arguments = [",".join(map(str, sorted(cores)))]
    if output is None:
        return WatchedProcess(_RUN, arguments, {**own, **os.environ, **chosen})
    environment, wrap = sandbox.make_environment(own | chosen), partial(sandbox.wrap, shared=sandbox.name_cache(start))
    try:
        return WatchedProcess(_RUN, arguments, environment, wrap=wrap, output=output.write_end)
    finally:
        os.close(output.write_end)
