"""Controls evaluator processes: a trusted one per device, and sandboxed ones for problem files of single clients."""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import Any

from harness.domain import DeviceError, Evaluation, Outcome, ReferenceStopped, WireError
from harness.domain.build import GOING_ON, LOCKED, PRECOMPILING
from harness.executors import clients
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
from harness.executors.executor import DeviceFacts
from harness.executors.locks import Check, hold_cores_to_time, hold_to_evaluate
from harness.executors.settings import LocalSettings
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
            self._waits_for, self._waits_since_s = message.reason, time.monotonic()

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
    environment, wrap = clients.make_environment(own | chosen), partial(clients.wrap, shared=clients.name_cache(start))
    try:
        return WatchedProcess(_RUN, arguments, environment, wrap=wrap, output=output.write_end)
    finally:
        os.close(output.write_end)


MOST_LOSSES = 2  # of sandboxes that evaluate one task
REFERENCE_STEPS = 4  # that may take their time limit in one evaluation
MOST_PRECOMPILING_S = 1800.0  # beyond the limit, since a client's process could say that it precompiles for ever


class OwnedDevice:
    """A client's process ends before another evaluation: its code may still run. Raises DeviceError."""

    def __init__(
        self,
        name: str,
        open_process: Callable[[str], EvaluatorProcess],
        settings: LocalSettings,
        *,
        times: bool,
        require_open: Check,
    ) -> None:
        """`open_process` takes the owner and raises DeviceError. With `times`, timing excludes builds."""
        self._open_process = open_process
        self._limit_s = settings.build_timeout_s + REFERENCE_STEPS * settings.reference_timeout_s
        self._times = times
        self._require_open = require_open
        self._owner = ""
        self._ended_counts = Counter[str]()
        self._waits_for = ""
        self._process: EvaluatorProcess | None = open_process("")
        self._facts = DeviceFacts(name=name, chip=self._process.chip)

    @property
    def facts(self) -> DeviceFacts:
        return self._facts

    @property
    def waits_for(self) -> str:
        process = self._process
        return self._waits_for or (process.waits_for if process is not None and not self._owner else "")

    @property
    def build_counts(self) -> Counter[str]:
        """Count builds of trusted processes only."""
        process = self._process
        counts = process.build_counts if process is not None and not self._owner else {}
        return self._ended_counts + Counter(counts)

    def close(self) -> None:
        process = self._process
        if process is not None:
            process.close()

    def evaluate(self, job: Job) -> Evaluation:
        try:
            if job.task.owner:
                return self._evaluate_for_client(job)
            return self._provide("").evaluate(job)
        except DeviceError as error:
            raise DeviceLost(str(error)) from error

    def _provide(self, owner: str) -> EvaluatorProcess:
        if self._process is None or owner != self._owner:
            self._end()
            self._process, self._owner = self._open_process(owner), owner
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()
            self._ended_counts += Counter({} if self._owner else process.build_counts)

    def _evaluate_for_client(self, job: Job) -> Evaluation:
        losses, outcome = list[str](), Outcome.PROBLEM_ERROR
        while len(losses) < MOST_LOSSES:
            try:
                process = self._provide(job.task.owner)
            except DeviceError as error:
                self._provide("")  # raises, too, if the device is the cause
                return job.task.give_up(Outcome.HARNESS_ERROR, "evaluator_lost", f"a sandbox did not start: {error}")
            try:
                with self._hold_locks(process.lock):
                    return self._evaluate_once(process, job)
            except ReferenceStopped as stopped:
                self._end()
                return job.task.give_up(Outcome.PROBLEM_ERROR, "reference_stopped", str(stopped))
            except (DeviceLost, ValueError) as loss:
                self._end()
                losses.append(str(loss))
                if isinstance(loss, DeviceLost) and loss.is_reported:  # a candidate may have destroyed its context
                    outcome = Outcome.HARNESS_ERROR
        message = f"the evaluator of this reference was lost: {'; then '.join(dict.fromkeys(losses))}"
        return job.task.give_up(outcome, "evaluator_lost", message)

    def _evaluate_once(self, process: EvaluatorProcess, job: Job) -> Evaluation:
        """Raises DeviceLost, ReferenceStopped, and ValueError for a contradictory verdict."""
        began_s, ended, is_late = time.monotonic(), Event(), Event()

        def end_late() -> None:
            while (left_s := began_s + self._limit_s + _excuse(process) - time.monotonic()) > 0:
                if ended.wait(left_s):
                    return
            is_late.set()
            process.kill()

        Thread(target=end_late, name="time limit", daemon=True).start()
        try:
            evaluation = process.evaluate(job)
        except (DeviceLost, ReferenceStopped) as error:
            if not is_late.is_set():
                raise
            options = "--build-timeout and --reference-timeout"
            raise ReferenceStopped(f"the evaluation did not end within {self._limit_s:g} s, by {options}") from error
        finally:
            ended.set()
        # Replace fields by values that are known here.
        duration_s = time.monotonic() - began_s
        build = evaluation.build
        if build is not None:
            build = replace(build, duration_s=min(max(0.0, build.duration_s), duration_s))
        return replace(evaluation, subject=job.task.subject, build=build, duration_s=duration_s)

    @contextmanager
    def _hold_locks(self, lock: str) -> Iterator[None]:
        """Locks are held in this process, since a client's process might not release them."""
        with (
            hold_to_evaluate(lock, self._say, self._require_open, times=self._times),
            hold_cores_to_time(self._say, self._require_open) if self._times else nullcontext(),
        ):
            yield

    def _say(self, reason: str) -> None:
        self._waits_for = reason


def _excuse(process: EvaluatorProcess) -> float:
    return min(process.precompiling_s, MOST_PRECOMPILING_S)
