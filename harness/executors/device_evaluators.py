"""Holds the evaluators of one device, one per language."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.builder.builder import Builder
from harness.builder.cache import default_cache_folder, find_machine_folder
from harness.builder.targets import name_architecture
from harness.builder.toolchain import Toolchain
from harness.domain import INCOMPLETE_ANSWER, NOTHING_AHEAD, BuiltAhead, Evaluation, Language, Outcome, ProblemError
from harness.evaluation.certificate import check_standing
from harness.evaluation.emulated.jit_compilation import CompilationAhead, LaunchChecker
from harness.evaluation.emulated.sanitizer import KernelChecker
from harness.evaluation.evaluator import CandidateEvaluator
from harness.evaluation.steps import PreparedReferences
from harness.evaluation.timing.roofline import PeakStore
from harness.evaluation.timing.system_conditions import NoiseFloors
from harness.executors.executor import Task
from harness.executors.locks import Say, say_nothing
from harness.executors.settings import Setup
from harness.hardware.gpus import GpuModel
from harness.languages import LANGUAGES
from harness.problems.workloads import complete_problem
from harness.sandbox.devices import Device, EmulatedDevice
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.policy import clean_environment, interpreter_folders
from harness.sandbox.workers_ahead import WorkersAhead
from harness.tensors.single_pass import warm_up_kernels

if TYPE_CHECKING:
    from harness.emulator import Emulation


class DeviceEvaluators:
    """With `device` None it only builds, and compiles ahead for `gpu`. `floors`: of noise. Thread-safe."""

    def __init__(
        self,
        setup: Setup,
        device: Device | None,
        *,
        checks: bool,
        gpu: GpuModel | None = None,
        floors: Path | None = None,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
        forkserver: Forkserver | None = None,
        on_count: Callable[[], None] = lambda: None,
        say: Say = say_nothing,
    ) -> None:
        """Any thread may call `on_count` when `build_counts` change. `say` tells of first calls and their end."""
        self._on_count = on_count
        self._say = say
        self._evaluated = ""
        self._setup = setup
        self._device = device
        self._gpu = gpu
        self._checks = checks
        self._machine = find_machine_folder(setup.settings.cache)
        self._floors = floors or self._machine
        self._quiet = quiet
        self._forkserver = forkserver or Forkserver(setup.isolation)
        self._forkserver.report_first_call = self._report_first_call
        self._emulation = None if device is None else _describe_emulation(device)
        self._emulated = None if self._emulation is None else self._forkserver
        self._workers = WorkersAhead(self._forkserver, device)
        self._prepared = PreparedReferences(self._workers)
        self._lock = threading.Lock()
        self._evaluators: dict[Language, CandidateEvaluator] = {}
        self._builders: dict[Emulation | None, Builder] = {}

    def evaluate(self, task: Task, ahead: BuiltAhead = NOTHING_AHEAD) -> Evaluation:
        """Adds the task's notes; those about an incomplete answer explain NO_CODE."""
        evaluator, problem = self._find_evaluator(task.subject.language), task.problem
        self._evaluated = f"{task.subject.problem}/{task.subject.sample}"
        self._find_builder(self._emulation).leave_uncounted(ahead.builds)
        if task.owner:
            try:
                problem = complete_problem(problem, task.subject.workload, task.subject.language)
            except ProblemError as error:
                return task.give_up(Outcome.PROBLEM_ERROR, "problem", str(error))
        evaluation = evaluator.evaluate(
            task.subject,
            problem,
            task.candidate,
            seed=task.seed,
            ahead=ahead,
            rival=task.rival,
            baselines=task.baselines,
        )
        causes = "; ".join(note.message for note in task.notes if note.check in INCOMPLETE_ANSWER)
        message = causes if causes and evaluation.outcome is Outcome.NO_CODE else evaluation.message
        return replace(evaluation, message=message, findings=(*evaluation.findings, *task.notes))

    def build_ahead(self, task: Task) -> BuiltAhead:
        if task.candidate is None:
            return NOTHING_AHEAD
        return self._find_evaluator(task.subject.language).prebuild(task.problem, task.subject.workload, task.candidate)

    def make_headers(self) -> None:
        """Make what the first build for a GPU waits for."""
        self._find_builder(None).make_headers()

    def warm_up(self) -> None:
        """Load what the first evaluation on a GPU waits for."""
        if self._device is not None and self._device.has_contexts:
            warm_up_kernels(self._device.torch_device)

    @property
    def build_counts(self) -> Counter[str]:
        with self._lock:
            builders = list(self._builders.values())
        return sum((Counter(builder.counts) for builder in builders), Counter[str]())

    def stop_builds(self) -> None:
        with self._lock:
            builders = list(self._builders.values())
        for builder in builders:
            builder.stop()

    def close(self) -> None:
        self.stop_builds()
        self._prepared.close()
        self._workers.close()
        for forkserver in filter(None, (self._forkserver, self._emulated)):
            forkserver.close()

    def _report_first_call(self, begins: bool) -> None:
        self._say(f"the first call of {self._evaluated}" if begins else "")

    def _find_evaluator(self, language: Language) -> CandidateEvaluator:
        with self._lock:
            if language not in self._evaluators:
                self._evaluators[language] = self._make_evaluator(language)
            return self._evaluators[language]

    def _make_evaluator(self, language: Language) -> CandidateEvaluator:
        device, checks = self._device, self._checks and LANGUAGES[language].uses_gpu
        by_nvcc = checks and self._emulation is not None and self._setup.toolchain.can_build_cuda
        return CandidateEvaluator(
            device=device,
            builder=self._find_builder(self._emulation),
            workers=self._workers,
            settings=self._setup.settings,
            peaks=PeakStore(self._setup.settings.measurements or self._machine),
            noise=NoiseFloors(self._floors),
            certificate=None if device is None else check_standing(self._machine, device).certificate,
            checker=self._make_checker() if checks else None,
            compiler=self._find_builder(None) if by_nvcc else None,
            quiet=self._quiet,
            prepared=self._prepared,
            ahead=self._make_compilation_ahead(),
        )

    def _make_compilation_ahead(self) -> CompilationAhead | None:
        if self._gpu is None:
            return None
        launches = LaunchChecker(
            device=EmulatedDevice(self._gpu.name),
            forkserver=self._forkserver,
            answer_build=self._find_builder(None).build,
            limits=self._setup.settings.limits,
        )
        return CompilationAhead(launches)

    def _make_checker(self) -> KernelChecker:
        """Use a separate forkserver: its workers import other parts of a compiler than those of a GPU."""
        if self._emulated is None:
            self._emulated = Forkserver(self._setup.isolation)
            self._emulated.report_first_call = self._report_first_call
        device = EmulatedDevice(self._setup.settings.gpu)
        return KernelChecker(
            device=device,
            builder=self._find_builder(_describe_emulation(device, checked=True)),
            forkserver=self._emulated,
            limits=self._setup.settings.limits,
        )

    def _find_builder(self, emulate: Emulation | None) -> Builder:
        if emulate not in self._builders:
            settings = self._setup.settings
            self._builders[emulate] = Builder(
                cache=settings.cache or default_cache_folder(),
                toolchain=choose_toolchain(self._setup, self._device),
                wrap=self._setup.isolation.wrap,
                readable=interpreter_folders(),
                environment=clean_environment,
                timeout_s=settings.build_timeout_s,
                max_cache_bytes=settings.max_cache_bytes,
                emulate=emulate,
                has_device=self._emulation is None,
                on_count=self._on_count,
            )
        return self._builders[emulate]


def choose_toolchain(setup: Setup, device: Device | None) -> Toolchain:
    """Use the emulated GPU's toolchain if nvcc checks emulated kernels."""
    target = None if device is None else device.target
    if target is None or setup.settings.architecture is not None:
        return setup.toolchain
    return replace(setup.toolchain, architecture=name_architecture(target.compute_capability))


def _describe_emulation(device: Device, *, checked: bool = False) -> Emulation | None:
    if device.target is None:
        return None
    from harness.emulator import Emulation

    return Emulation(target=device.target, checked=checked)
