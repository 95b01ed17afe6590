"""Builds a client's candidates ahead, in a process with the same sandbox and cache as its evaluator."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.domain import EMULATED, HarnessError
from harness.problems.watched_process import ProcessEnded, WatchedProcess, connect

if TYPE_CHECKING:
    from harness.executors.device_evaluators import DeviceEvaluators
    from harness.executors.evaluator_process import Start
    from harness.executors.tasks import Task

_RUN = "from harness.executors.clients.builds import main; main()"


class BuildsAhead:
    """The process starts with the first task. After its end, candidates are built in their evaluations."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._process: WatchedProcess | None = None
        self._begun = set[str]()  # digests of candidates

    def begin(self, tasks: Sequence[Task]) -> None:
        new = [task for task in tasks if task.has_extensions and task.subject.candidate_digest not in self._begun]
        if not new:
            return
        self._begun |= {task.subject.candidate_digest for task in new}
        with suppress(ProcessEnded):
            if self._process is None:
                self._process = WatchedProcess(_RUN)
                self._process.send(self._start)
            for task in new:
                self._process.send(task)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()


def main() -> None:
    line, _ = connect(sys.argv[1:])
    start: Start = line.recv()
    os.sched_setaffinity(0, start.build_cores)  # before torch counts cores
    from harness.executors.device_evaluators import DeviceEvaluators
    from harness.problems.steps import set_reference_limit
    from harness.sandbox.devices import EmulatedDevice

    settings = start.setup.settings
    set_reference_limit(settings.reference_timeout_s)
    device = EmulatedDevice(settings.gpu) if start.device == EMULATED else None
    evaluators = DeviceEvaluators(start.setup, device, checks=start.checks)
    pool = ThreadPoolExecutor(settings.jobs or len(start.build_cores), "build")
    with suppress(EOFError, OSError):
        while True:
            pool.submit(_build, evaluators, line.recv())
    os._exit(0)


def _build(evaluators: DeviceEvaluators, task: Task) -> None:
    from harness.executors.locks import hold_cores_to_build
    from harness.problems.workloads import complete_problem

    with suppress(HarnessError), hold_cores_to_build():
        problem = complete_problem(task.problem, task.subject.workload, task.subject.language)
        evaluators.build_ahead(replace(task, problem=problem))
