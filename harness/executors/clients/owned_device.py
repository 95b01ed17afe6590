"""One device with a trusted evaluator process, or a sandboxed one for the problem files of one client."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from threading import Event, Thread

from harness.domain import DeviceError, Evaluation, Outcome, ReferenceStopped
from harness.executors.device_pool import DeviceLost, Job
from harness.executors.executor import DeviceFacts
from harness.executors.locks import Check, hold_cores_to_time, hold_to_evaluate
from harness.executors.processes import EvaluatorProcess
from harness.executors.settings import LocalSettings

MOST_LOSSES = 2  # of sandboxes that evaluate one task
REFERENCE_STEPS = 4  # that may take their time limit in one evaluation
MOST_PRECOMPILING_S = 1800.0  # beyond the limit, since a client's process could say that it precompiles for ever


class OwnedDevice:
    """A client's process ends before an evaluation for anyone else begins, since that client's code may still run in
    it. Raises DeviceError if no process starts.
    """

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
        return _correct(evaluation, job, time.monotonic() - began_s)

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


def _correct(evaluation: Evaluation, job: Job, duration_s: float) -> Evaluation:
    """Replace fields by values that are known here. Raises ValueError for contradictions."""
    build = evaluation.build
    if build is not None:
        build = replace(build, duration_s=min(max(0.0, build.duration_s), duration_s))
    return replace(evaluation, subject=job.task.subject, build=build, duration_s=duration_s)
