"""Evaluates on this machine: builds ahead on every core, then judges one candidate after another on its device; in
batches where kernels are emulated.

On the CPU nothing is built while something is timed. CUDA candidates are judged on a GPU, or emulated where there is
none. What has no device is judged (built, linked, loaded) during the build phase, since nothing of it is timed. Every
evaluation is handed over the moment it ends.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from harness.builder import Builder, Toolchain, default_cache_folder, find_machine_folder, probe_toolchain
from harness.builder.cache import DEFAULT_LIMIT_BYTES
from harness.domain import (
    EMULATED,
    TRUNCATED,
    Candidate,
    Evaluation,
    Finding,
    Language,
    Outcome,
    Problem,
    Subject,
)
from harness.emulator import Emulation
from harness.evaluation.emulated.sanitizer import KernelChecker
from harness.evaluation.evaluator import Judge, JudgeSettings
from harness.evaluation.timing.device_peaks import CeilingStore
from harness.evaluation.timing.noise_floor import NoiseFloors
from harness.executors.certified import check_standing
from harness.problems.time_limit import DEFAULT_LIMIT_S, set_reference_limit
from harness.sandbox.devices import JudgeDevice, open_device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.memory_limits import keep_freed_memory
from harness.sandbox.policy import (
    Confinement,
    clean_environment,
    interpreter_folders,
    probe_confinement,
)

NO_DEVICE = "none"
BATCH_PER_JOB = 2
FEW_BUILDS = 2  # for which the fast lane's kit is not made ahead
Stage = Literal["build", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One candidate to be judged. `candidate` None: no code was found. The subject's device is filled in here.
    `seed`: that of an earlier evaluation, to be made again; None draws a secret one. `notes` on the answer that the
    candidate came from join the findings."""

    subject: Subject
    problem: Problem
    candidate: Candidate | None
    seed: int | None = None
    notes: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """`device` "auto", "cpu", "emulated" or "cuda:N"; `jobs` builds at a time; `architecture` as in
    TORCH_CUDA_ARCH_LIST. `gpu` names what is emulated (None: the usual); `check_kernels` None: where emulated.
    `memory_bytes` is how much of the device's memory evaluations may plan with (None: all that is free).
    `reference_timeout_s` is for each step of a problem file, and holds in the whole process."""

    device: str = "auto"
    gpu: str | None = None
    memory_bytes: int | None = None
    check_kernels: bool | None = None
    architecture: str | None = None
    jobs: int | None = None
    cache: Path | None = None
    confinement: str = "auto"
    build_timeout_s: float = 600.0
    reference_timeout_s: float = DEFAULT_LIMIT_S
    max_cache_bytes: int = DEFAULT_LIMIT_BYTES
    judge: JudgeSettings = field(default_factory=JudgeSettings)


Report = Callable[[Stage, Task, Evaluation | None], None]
_Built = tuple[Evaluation | None, ExitStack]  # the verdict of what is only built, reserved until it is reported
Reserve = Callable[[Task], AbstractContextManager[bool]]


def reserve_always(task: Task) -> AbstractContextManager[bool]:
    """Every task is this process's own."""
    return nullcontext(True)


def _evaluate(judge: Judge, task: Task) -> Evaluation:
    """The verdict, with the notes on the answer; where that held no program, they may say why."""
    evaluation = judge.evaluate(task.subject, task.problem, task.candidate, seed=task.seed)
    causes = [note.message for note in task.notes if note.check == TRUNCATED]
    message = causes[0] if causes and evaluation.outcome is Outcome.NO_CODE else evaluation.message
    return replace(evaluation, message=message, findings=(*evaluation.findings, *task.notes))


class LocalExecutor:
    """This machine's devices. Use as a context manager: leaving it ends every process it started."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
        self._jobs = settings.jobs or len(os.sched_getaffinity(0))
        set_reference_limit(settings.reference_timeout_s)
        self.confinement: Confinement = probe_confinement(settings.confinement)
        self.toolchain: Toolchain = probe_toolchain(settings.architecture)
        self._forkserver = Forkserver(self.confinement)
        self._builders: dict[Emulation | None, Builder] = {}
        self._judges: dict[Language, tuple[Judge, JudgeDevice | None]] = {}

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_builds()
        self._forkserver.close()

    @property
    def build_counts(self) -> dict[str, int]:
        """How many builds ended how so far, by status, lane and reason: see `Builder.counts`."""
        total: Counter[str] = Counter()
        for builder in self._builders.values():
            total.update(builder.counts)
        return dict(total)

    def device_name(self, language: Language) -> str:
        """The device that candidates of a language are judged on here; "none" where there is none."""
        device = self._judge(language)[1]
        return NO_DEVICE if device is None else device.name

    def emulated_gpu(self, language: Language) -> str:
        """The GPU that candidates of a language see here without its being there; "" for a device that is there."""
        device = self._judge(language)[1]
        return "" if device is None or device.target is None else device.target.name

    def run(self, tasks: Sequence[Task], report: Report, reserve: Reserve = reserve_always) -> list[Task]:
        """Judges every task and reports each as it ends, in this thread. Stages: built ("build"), judged ("judge").

        `reserve` is held while a task is built, and from its judging until it is reported; tasks that it refuses
        (False) are returned.
        """
        for language in {task.subject.language for task in tasks}:
            self._judge(language)  # devices are opened before threads start
        if len(tasks) > FEW_BUILDS:
            for builder in self._builders.values():
                builder.expect_many()
        left = {id(task): task for task in map(self._place, tasks)}

        def take(stage: Stage, task: Task, evaluation: Evaluation | None) -> None:
            if evaluation is not None:
                del left[id(task)]
            report(stage, task, evaluation)

        for batch in self._split(list(left.values())):
            self._build_ahead(batch, take, reserve)
            for task in batch:
                self._judge_one(task, take, reserve)
        return list(left.values())

    def _judge_one(self, task: Task, report: Report, reserve: Reserve) -> None:
        judge, device = self._judge(task.subject.language)
        if device is None:
            return
        with reserve(task) as reserved:
            if reserved:
                with nullcontext() if device.is_emulated else hold_device(device.name):
                    evaluation = _evaluate(judge, task)
                report("judge", task, evaluation)

    def _split(self, tasks: list[Task]) -> Iterator[list[Task]]:
        """Batches that are built and then judged: small ones where kernels are emulated, which takes so long to build
        for that no verdict would be there for an hour; elsewhere all at once."""
        emulated = [task for task in tasks if task.subject.device == EMULATED]
        yield [task for task in tasks if task.subject.device != EMULATED]
        size = BATCH_PER_JOB * self._jobs
        yield from (emulated[start : start + size] for start in range(0, len(emulated), size))

    def _place(self, task: Task) -> Task:
        return replace(task, subject=replace(task.subject, device=self.device_name(task.subject.language)))

    def _build_ahead(self, tasks: Sequence[Task], report: Report, reserve: Reserve) -> None:
        with ThreadPoolExecutor(max_workers=self._jobs) as pool:
            running = {pool.submit(self._build_one, task, reserve): task for task in tasks}
            try:
                for future, task in _as_completed(running):
                    evaluation, reservation = future.result()
                    with reservation:
                        report("build" if evaluation is None else "judge", task, evaluation)
            except BaseException:
                for future in running:
                    future.cancel()
                self._stop_builds()
                self._forkserver.close()
                raise

    def _build_one(self, task: Task, reserve: Reserve) -> _Built:
        judge, device = self._judge(task.subject.language)
        with ExitStack() as reservation:
            if not reservation.enter_context(reserve(task)):
                return None, ExitStack()
            if device is None:
                return _evaluate(judge, task), reservation.pop_all()
            if task.candidate is not None:
                judge.prebuild(task.problem, task.subject.workload, task.candidate)
        return None, ExitStack()

    def _judge(self, language: Language) -> tuple[Judge, JudgeDevice | None]:
        if language not in self._judges:
            keep_freed_memory()
            settings = self._settings
            device = open_device(settings.device, language, settings.gpu, memory_bytes=settings.memory_bytes)
            self._judges[language] = (self._make_judge(device, language), device)
        return self._judges[language]

    def _make_judge(self, device: JudgeDevice | None, language: Language) -> Judge:
        machine = find_machine_folder(self._settings.cache)
        emulated = device is not None and device.is_emulated
        wanted = emulated if self._settings.check_kernels is None else self._settings.check_kernels
        checks = wanted and language == "cuda" and device is not None
        return Judge(
            device=device,
            builder=self._find_builder(None if device is None else _describe_emulation(device)),
            forkserver=self._forkserver,
            settings=self._settings.judge,
            ceilings=CeilingStore(machine),
            noise=NoiseFloors(machine),
            certificate=None if device is None else check_standing(machine, device).certificate,
            checker=self._make_checker() if checks else None,
            compiler=self._find_builder(None) if checks and emulated and self.toolchain.can_build_cuda else None,
        )

    def _make_checker(self) -> KernelChecker:
        device = JudgeDevice(EMULATED, self._settings.gpu)
        return KernelChecker(
            device=device,
            builder=self._find_builder(_describe_emulation(device, checked=True)),
            forkserver=self._forkserver,
            limits=self._settings.judge.limits,
        )

    def _find_builder(self, emulate: Emulation | None) -> Builder:
        if emulate not in self._builders:
            self._builders[emulate] = Builder(
                cache=self._settings.cache or default_cache_folder(),
                toolchain=self.toolchain,
                wrap=self.confinement.wrap,
                readable=interpreter_folders(),
                environment=clean_environment,
                timeout_s=self._settings.build_timeout_s,
                max_cache_bytes=self._settings.max_cache_bytes,
                emulate=emulate,
            )
        return self._builders[emulate]

    def _stop_builds(self) -> None:
        for builder in self._builders.values():
            builder.stop()


def _describe_emulation(device: JudgeDevice, *, checked: bool = False) -> Emulation | None:
    return None if device.target is None else Emulation(target=device.target, checked=checked)


def _as_completed(running: dict[Future[_Built], Task]) -> Iterator[tuple[Future[_Built], Task]]:
    """Futures as they end. Waits in short steps, so that Ctrl-C is heard at once."""
    left = set(running)
    while left:
        done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            yield future, running[future]


@contextmanager
def hold_device(name: str) -> Iterator[None]:
    """One measurement at a time on a device, whichever process makes it: two at once would disturb each other."""
    path = Path(tempfile.gettempdir()) / f"harness-{os.getuid()}-{name.replace(':', '-')}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
