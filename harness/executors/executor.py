"""Tasks, the protocol of executors, and the submission of tasks to them."""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, Self

from harness.domain import (
    EAGER,
    NO_DEVICE,
    NO_PROMPT,
    Candidate,
    Evaluation,
    Finding,
    Language,
    Outcome,
    Precision,
    Problem,
    Rival,
    Subject,
    TimedBaseline,
    WorkloadName,
)
from harness.languages import LANGUAGES, note_other_language


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`candidate` is None if no code was found. `seed` repeats an evaluation. `notes` join the findings. A correct
    candidate is compared with `rival`. `owner` is the client who sent the problem file, or "", which is trusted.
    """

    subject: Subject
    problem: Problem
    candidate: Candidate | None
    seed: int | None = None
    notes: tuple[Finding, ...] = ()
    rival: Rival | None = None
    owner: str = ""
    baselines: tuple[TimedBaseline, ...] = EAGER

    def on_device(self, name: str) -> Self:
        return replace(self, subject=replace(self.subject, device=name))

    def against(self, baselines: tuple[TimedBaseline, ...]) -> Self:
        return replace(self, baselines=baselines, subject=replace(self.subject, baseline=baselines[0].name))

    @property
    def has_extensions(self) -> bool:
        return self.candidate is not None and self.candidate.has_extensions

    @property
    def builds_extensions(self) -> bool:
        """Building ahead executes the problem file in a trusted process."""
        return self.has_extensions and not self.owner

    @property
    def compiles_ahead(self) -> bool:
        """For a GPU. Compiling ahead executes the problem file, too."""
        compiles = LANGUAGES[self.subject.language].compiles_ahead and self.candidate is not None
        return compiles and not self.has_extensions and not self.owner

    def give_up(self, outcome: Outcome, check: str, message: str) -> Evaluation:
        finding = Finding(check=check, severity="fatal", message=message)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Evaluation(subject=self.subject, outcome=outcome, message=message, findings=(finding,), started_at=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """`suite` None selects the problem's."""

    run: str
    model: str
    sample: int = 0
    turn: int = 0
    prompt: str = NO_PROMPT
    suite: str | None = None


def make_task(
    problem: Problem,
    candidate: Candidate | None,
    origin: Origin,
    *,
    language: Language,
    workload: WorkloadName = "full",
    baselines: tuple[TimedBaseline, ...] = EAGER,
    seed: int | None = None,
    notes: tuple[Finding, ...] = (),
    dtype: Precision | None = None,
) -> Task:
    """`dtype` None keeps the problem's. The first of the `baselines` ranks."""
    problem = problem if dtype is None else problem.in_precision(dtype)
    subject = Subject(
        run=origin.run,
        sample=origin.sample,
        turn=origin.turn,
        model=origin.model,
        prompt=origin.prompt,
        suite=problem.suite if origin.suite is None else origin.suite,
        problem=problem.name,
        problem_digest=problem.digest,
        candidate_digest="" if candidate is None else candidate.digest,
        language=language,
        device=NO_DEVICE,
        workload=workload,
        baseline=baselines[0].name,
        dtype=problem.precision,
    )
    if candidate is not None:
        notes += note_other_language(candidate.source, language)
    return Task(subject=subject, problem=problem, candidate=candidate, seed=seed, notes=notes, baselines=baselines)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """`chip` is the GPU or CPU name; `emulated_gpu` is "" for a real device."""

    name: str
    chip: str
    emulated_gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    name: str
    waiting: int
    running: int
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorStatus:
    """`builds` are `Builder.counts`, `lost` abandoned devices. After a `failure` only a new executor evaluates."""

    building: int
    builds: dict[str, int]
    devices: tuple[DeviceStatus, ...]
    lost: tuple[str, ...] = ()
    failure: str = ""
    waits_for: str = ""


class Executor(Protocol):
    """Thread-safe."""

    @property
    def capacity(self) -> int:
        """Return the number of tasks that keep all devices and build slots busy."""

    def devices(self, language: Language) -> tuple[DeviceFacts, ...]:
        """Candidates are only built if the result is empty."""

    def submit(self, task: Task) -> Future[Evaluation]:
        """Failing candidates are results; exceptions are the executor's own."""

    def status(self) -> ExecutorStatus: ...

    def close(self) -> None:
        """Makes running evaluations raise."""


Report = Callable[[Task, Evaluation], None]


class Submissions:
    """Submits only as many tasks as keep an executor busy, plus `more`, and none after an error. Tasks that build have
    slots of their own. With `same_inputs`, a problem's candidates share inputs and weights, which are made once.
    """

    def __init__(self, executor: Executor, *, more: int = 0, same_inputs: bool = True) -> None:
        self._executor, self._slots = executor, executor.capacity
        self._free = {builds: asyncio.Semaphore(self._slots + more) for builds in (False, True)}
        self._seeds = defaultdict[str, int](partial(secrets.randbits, 62)) if same_inputs else None  # by problem
        self._error: Exception | None = None

    @asynccontextmanager
    async def wait_for_slot(self, task: Task) -> AsyncIterator[None]:
        """Raises an error that another slot has ended with."""
        async with self._free[task.builds_extensions]:
            if self._error is not None:
                raise self._error
            try:
                yield
            except Exception as error:
                self._error = self._error or error
                raise
            finally:
                self._add_slots()

    async def submit(self, task: Task) -> Evaluation:
        if task.seed is None and self._seeds is not None:
            task = replace(task, seed=self._seeds[task.problem.digest])
        future = self._executor.submit(task)
        self._add_slots()
        return await asyncio.wrap_future(future)

    def _add_slots(self) -> None:
        while self._slots < self._executor.capacity:
            self._slots += 1
            for free in self._free.values():
                free.release()


async def finish_all(jobs: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Raises the first error after all have ended."""
    for result in await asyncio.gather(*jobs, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def run_tasks(executor: Executor, tasks: Iterable[Task], report: Report) -> None:
    """Reports each result in this thread. Raises the first error after all running tasks have ended."""

    async def run() -> None:
        submissions = Submissions(executor)

        async def run_one(task: Task) -> None:
            async with submissions.wait_for_slot(task):
                report(task, await submissions.submit(task))

        await finish_all(map(run_one, tasks))

    asyncio.run(run())
