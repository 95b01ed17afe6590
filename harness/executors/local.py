"""Evaluates on this machine: builds ahead on every core, then judges one candidate after another on its device.

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
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from harness.build import Builder, Toolchain, default_cache_folder, find_machine_folder, probe_toolchain
from harness.build.cache import DEFAULT_LIMIT_BYTES
from harness.domain import EMULATED, Candidate, Evaluation, Language, Problem, Subject
from harness.emulate import Emulation
from harness.executors.certified import check_standing
from harness.judge.ceilings import CeilingStore
from harness.judge.confinement import (
    Confinement,
    clean_environment,
    interpreter_folders,
    probe_confinement,
)
from harness.judge.devices import JudgeDevice, open_device
from harness.judge.evaluate import Judge, JudgeSettings
from harness.judge.forkserver import Forkserver
from harness.judge.kernel_check import KernelChecker
from harness.judge.memory_limit import keep_freed_memory
from harness.judge.noise import NoiseFloors

NO_DEVICE = "none"
Stage = Literal["build", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One candidate to be judged. `candidate` None: no code was found. The subject's device is filled in here.
    `seed`: that of an earlier evaluation, to be made again; None draws a secret one."""

    subject: Subject
    problem: Problem
    candidate: Candidate | None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """`device` "auto", "cpu", "emulated" or "cuda:N"; `jobs` builds at a time; `architecture` as in
    TORCH_CUDA_ARCH_LIST. `gpu` names what is emulated (None: the usual); `check_kernels` None: where emulated."""

    device: str = "auto"
    gpu: str | None = None
    check_kernels: bool | None = None
    architecture: str | None = None
    jobs: int | None = None
    cache: Path | None = None
    confinement: str = "auto"
    build_timeout_s: float = 600.0
    max_cache_bytes: int = DEFAULT_LIMIT_BYTES
    judge: JudgeSettings = field(default_factory=JudgeSettings)


Report = Callable[[Stage, Task, Evaluation | None], None]


class LocalExecutor:
    """This machine's devices. Use as a context manager: leaving it ends every process it started."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
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
        """How many builds ended how so far: built, cached, failed, refused, timeout; `fast` of the built ones."""
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

    def run(self, tasks: Sequence[Task], report: Report) -> None:
        """Judges every task and reports each as it ends, in this thread. Stages: built ("build"), judged ("judge")."""
        for language in {task.subject.language for task in tasks}:
            self._judge(language)  # devices are opened before threads start
        placed = [self._place(task) for task in tasks]
        self._build_ahead(placed, report)
        for task in placed:
            judge, device = self._judge(task.subject.language)
            if device is not None:
                with nullcontext() if device.is_emulated else hold_device(device.name):
                    evaluation = judge.evaluate(task.subject, task.problem, task.candidate, seed=task.seed)
                report("judge", task, evaluation)

    def _place(self, task: Task) -> Task:
        return replace(task, subject=replace(task.subject, device=self.device_name(task.subject.language)))

    def _build_ahead(self, tasks: Sequence[Task], report: Report) -> None:
        jobs = self._settings.jobs or len(os.sched_getaffinity(0))
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            running = {pool.submit(self._build_one, task): task for task in tasks}
            try:
                for future, task in _as_completed(running):
                    evaluation = future.result()
                    report("build" if evaluation is None else "judge", task, evaluation)
            except BaseException:
                for future in running:
                    future.cancel()
                self._stop_builds()
                self._forkserver.close()
                raise

    def _build_one(self, task: Task) -> Evaluation | None:
        judge, device = self._judge(task.subject.language)
        if device is None:
            return judge.evaluate(task.subject, task.problem, task.candidate, seed=task.seed)
        if task.candidate is not None:
            judge.prebuild(task.problem, task.subject.workload, task.candidate)
        return None

    def _judge(self, language: Language) -> tuple[Judge, JudgeDevice | None]:
        if language not in self._judges:
            keep_freed_memory()
            device = open_device(self._settings.device, language, self._settings.gpu)
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


def _as_completed(running: dict[Future[Evaluation | None], Task]) -> Iterator[tuple[Future[Evaluation | None], Task]]:
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
