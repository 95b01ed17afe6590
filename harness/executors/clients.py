"""The sandbox of processes that run a client's problem files: read-only Python, compilers, this package, devices,
prebuilt headers; no network, files in memory. Workers and compilers have their usual sandboxes inside.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.builder.cache import DRIVERS, KITS, READY, default_cache_folder, find_machine_folder
from harness.domain import EMULATED, HarnessError
from harness.hardware.host import CGROUP
from harness.problems.watched_process import ProcessEnded, WatchedProcess, connect
from harness.sandbox.policy import clean_environment, interpreter_folders, probe_isolation, wrap_evaluator
from harness.shipped import PACKAGE, find_shipped

if TYPE_CHECKING:
    from harness.executors.device_evaluators import DeviceEvaluators
    from harness.executors.evaluator_process import Start
    from harness.executors.executor import Task

SCRATCH = "/tmp"
MOST_BUILDS_BYTES = 1 << 30
_RUN = "from harness.executors.clients import main; main()"


def wrap(command: list[str], *, shared: Path) -> list[str]:
    """`shared` is the cache of trusted evaluations."""
    readable = [*interpreter_folders(), PACKAGE, find_shipped("redteam_corpus"), CGROUP]
    readable += [shared / KITS, find_machine_folder(shared), *shared.glob(DRIVERS)]
    return wrap_evaluator(command, readable=readable)


def name_cache(start: Start) -> Path:
    assert start.setup.settings.cache is not None
    return start.setup.settings.cache


def make_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Exclude keys and tokens of the service. Caches and temporary files are in the scratch space."""
    return clean_environment({"HOME": SCRATCH, "XDG_CACHE_HOME": SCRATCH, **own})


def settle(start: Start) -> Start:
    """Run inside the sandbox before any client code. Make a separate cache with copies of the shared measurements and
    links to the shared prebuilt headers, and find the isolation that is possible here.
    """
    settings, shared, own = start.setup.settings, name_cache(start), default_cache_folder()
    if find_machine_folder(shared).is_dir():
        shutil.copytree(find_machine_folder(shared), find_machine_folder(own))
    (own / KITS).mkdir(parents=True, exist_ok=True)
    for made in (*(ready.parent for ready in (shared / KITS).glob(f"*/{READY}")), *shared.glob(DRIVERS)):
        (own / made.relative_to(shared)).symlink_to(made)

    def move(folder: Path | None) -> Path | None:
        return None if folder is None else own / folder.relative_to(shared)

    settled = replace(
        settings,
        cache=own,
        measurements=move(settings.measurements),
        max_cache_bytes=min(settings.max_cache_bytes, MOST_BUILDS_BYTES),
    )
    setup = replace(start.setup, settings=settled, isolation=probe_isolation(settings.isolation))
    return replace(start, setup=setup, floors=move(start.floors))


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
    from harness.problems.watched_process import set_reference_limit
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
