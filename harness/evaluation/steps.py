"""The steps of the method: each takes a case and returns its findings and facts."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial

from harness.domain import (
    EAGER,
    NOTHING_AHEAD,
    BuiltAhead,
    Candidate,
    CandidateFailure,
    Finding,
    Outcome,
    Problem,
    ProblemTooLarge,
    Rival,
    Subject,
    TimedBaseline,
    WorkloadName,
)
from harness.evaluation.cases import WHOLE, CaseRun
from harness.evaluation.correctness.checks import check_correctness
from harness.evaluation.correctness.planned_calls import Exercises
from harness.evaluation.correctness.reference import Reference, prepare_reference
from harness.evaluation.correctness.robustness import probe_candidate
from harness.evaluation.counters import count_in_hardware
from harness.evaluation.emulated.sanitizer import KernelChecker, explained_by_kernels
from harness.evaluation.integrity.address_sanitizer import call_under_sanitizer
from harness.evaluation.integrity.attribution import (
    CustomKernels,
    attribute_replayed,
    attribute_work,
    confirm_custom_code,
    confirm_recorded_code,
    describe_custom_kernels,
    name_custom_kernels,
)
from harness.evaluation.integrity.code_samples import CodeSamples
from harness.evaluation.integrity.static_checks import warn_of_narrow_formats
from harness.evaluation.memory_plan import Thrift, plan_in_full
from harness.evaluation.model_construction import construct_model, load_only
from harness.evaluation.model_workers import CandidateBuilds, ModelWorkers
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.results import ReplayedKernels, StepResult
from harness.evaluation.settings import EvaluationSettings
from harness.evaluation.timing.apart import await_idle
from harness.evaluation.timing.roofline import Roofline
from harness.evaluation.timing.system_conditions import NoiseFloors
from harness.languages import CPU_LANGUAGE, LANGUAGES
from harness.problems.loading import LoadedProblem
from harness.problems.watched_process import read_init_inputs
from harness.sandbox.devices import Device
from harness.sandbox.gpu.recorded_code import RecordedFunction
from harness.sandbox.gpu.recording import NotReplayable, Recording
from harness.sandbox.model_session import ModelSession
from harness.sandbox.workers_ahead import WorkersAhead

KEPT_SHARE = 4  # a reference is kept while so many times its plan's memory are free
KEPT_PROBLEMS = 4  # builds end in any order, so candidates of a few problems alternate
Key = tuple[str, int]  # problem, and the seed of an evaluation


class PreparedReferences:
    """References are kept, and workers wait, only if memory is plentiful, so that no check is dropped for them."""

    def __init__(self, ahead: WorkersAhead) -> None:
        self._ahead = ahead
        self._kept: list[tuple[Key, Reference]] = []
        self._last: list[Key] = []  # the newest at the end

    def begin(self, problem: Problem, seed: int) -> None:
        """Call before each evaluation: others of the same problem and seed have the same references."""
        key = problem.digest, seed
        others = [one for one in self._last if one[0] != problem.digest]
        self._last = [*others[1 - KEPT_PROBLEMS :], key]
        self._drop(lambda one: one not in self._last)

    @contextmanager
    def borrow(
        self, loaded: LoadedProblem, device: Device, seeds: tuple[int, int], thrift: Thrift
    ) -> Iterator[Reference]:
        """Do not keep a reference after a failed allocation. For `seeds` and errors see `prepare_reference`."""
        reference = self._take(loaded, seeds, thrift) or self._prepare(loaded, device, seeds, thrift)
        try:
            yield reference
        finally:
            is_plentiful = device.keeps_references and thrift == "planned" and reference.has_full_plan
            if is_plentiful and reference.plan.device_bytes * KEPT_SHARE < device.measure_room().device_bytes:
                self._kept.append((self._last[-1], reference))
            else:
                reference.close()

    def close(self) -> None:
        self._drop(lambda _: True)

    def _drop(self, is_dropped: Callable[[Key], bool]) -> None:
        dropped = [reference for key, reference in self._kept if is_dropped(key)]
        self._kept = [one for one in self._kept if not is_dropped(one[0])]
        for reference in dropped:
            reference.close()

    def _take(self, loaded: LoadedProblem, seeds: tuple[int, int], thrift: Thrift) -> Reference | None:
        if thrift != "planned":
            self._ahead.release()
            self.close()
        wanted = seeds[0], loaded.workload, loaded.problem
        for at, (_, kept) in enumerate(self._kept):
            if (kept.seed, kept.loaded.workload, kept.loaded.problem) == wanted:
                return self._kept.pop(at)[1]
        return None

    def _prepare(self, loaded: LoadedProblem, device: Device, seeds: tuple[int, int], thrift: Thrift) -> Reference:
        if self._ahead.some_wait or self._kept:
            with suppress(ProblemTooLarge):
                reference = prepare_reference(loaded, device, *seeds, thrift=thrift)
                if reference.has_full_plan:
                    return reference
                del reference
            self._ahead.release()
            self.close()
        return prepare_reference(loaded, device, *seeds, thrift=thrift)


NOTHING = StepResult()


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTask:
    """One attempt. `ahead` holds extensions that were built before. `rival` is the search's best earlier program."""

    record: EvaluationRecord
    problem: Problem
    subject: Subject
    candidate: Candidate
    ahead: BuiltAhead = NOTHING_AHEAD
    run: CaseRun = WHOLE
    rival: Rival | None = None
    baselines: tuple[TimedBaseline, ...] = EAGER

    @property
    def kernels(self) -> tuple[str, ...]:
        return LANGUAGES[self.subject.language].list_kernels(self.candidate.source)

    @property
    def libraries(self) -> list[str]:
        return [build.extension for build in self.record.builds if build.extension is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationTools:
    """For one language on one device. With `device` None, candidates are only loaded. `quiet` may wait for builds."""

    device: Device | None
    settings: EvaluationSettings
    builds: CandidateBuilds
    workers: ModelWorkers
    prepared: PreparedReferences
    noise: NoiseFloors | None  # None: the device type's floors are used
    environment: Mapping[str, str]
    roofline: Roofline
    checker: KernelChecker | None
    quiet: Callable[[], AbstractContextManager[None]]

    @property
    def is_emulated(self) -> bool:
        return self.device is not None and self.device.is_emulated

    def require_device(self) -> Device:
        assert self.device is not None
        return self.device

    def times(self, task: CandidateTask) -> bool:
        return self.settings.measure_time and task.run.is_timed and self.require_device().is_timed

    def prepare_device(self, task: CandidateTask) -> None:
        """A GPU's peaks need an idle device with free memory."""
        device = self.require_device()
        await_idle(device)  # work of the previous candidate may still run
        if device.replays_calls and self.times(task) and self.roofline.peaks.look_up(device) is None:
            with self.quiet():
                self.find_peaks(task)

    def find_peaks(self, task: CandidateTask) -> None:
        """The device must be idle."""
        with task.record.phase("peaks"):
            self.roofline.peaks.find(self.require_device())

    def require_builds(self, task: CandidateTask) -> None:
        """Raises CandidateFailure if the candidate needs extensions that failed. Does not use the GPU."""
        attempt = EvaluationRecord(seed=task.record.seed)
        try:
            self.load_only(attempt, task.problem, task.subject.workload, task.candidate)
        except CandidateFailure:
            task.record.add_builds_of(attempt)
            raise

    def load_only(
        self, record: EvaluationRecord, problem: Problem, workload: WorkloadName, candidate: Candidate
    ) -> None:
        load_only(
            record,
            read_init_inputs(problem, workload),
            candidate,
            forkserver=self.workers.ahead.forkserver,
            device=self.device,
            answer_build=self.builds.answer_for(record, candidate, ahead=True),
            limits=self.settings.limits,
        )


@dataclass(slots=True, kw_only=True)
class CaseContext:
    """`session` is the candidate's worker until `worker` is closed: before attribution, unless `keeps_worker`."""

    tools: EvaluationTools
    task: CandidateTask
    reference: Reference
    seeds: Iterator[int]
    exercises: Exercises
    session: ModelSession
    worker: ExitStack
    recorded: Recording | NotReplayable | None = None
    call_us: float | None = None  # of a whole call, beside device time
    replayed_kernels: ReplayedKernels | None = None
    samples: CodeSamples | None = None  # on a CPU, of calls that may run custom code
    recorded_functions: list[RecordedFunction] | None = None  # of a call that is not replayed; None: not asked

    @property
    def record(self) -> EvaluationRecord:
        return self.task.record

    @property
    def is_replayed(self) -> bool:
        return self.reference.device.replays_calls

    @property
    def keeps_worker(self) -> bool:
        return not self.is_replayed and self.reference.plan.baseline_beside

    @property
    def is_timed(self) -> bool:
        return self.tools.times(self.task)

    @property
    def is_attributed(self) -> bool:
        """On a GPU all timed cases, since the program may differ between them."""
        is_wanted = self.task.run.is_first or (self.is_timed and self.is_replayed)
        return self.tools.settings.attribute_work and is_wanted

    def describe_custom_kernels(self) -> CustomKernels:
        if not LANGUAGES[self.task.subject.language].writes_kernels:
            return CustomKernels(names=(), generated=True)
        again = partial(self.tools.workers.compile_again, self.reference.device.evaluator_cores)
        return describe_custom_kernels(
            self.record.built,
            source=self.task.candidate.source,
            libraries=self.task.libraries if self.is_replayed else (),
            kernels=self.task.kernels,
            compile_again=again if self.is_replayed else None,
        )

    def quiet(self) -> AbstractContextManager[None]:
        return nullcontext() if self.keeps_worker else self.tools.quiet()

    def set_worker_aside(self) -> AbstractContextManager[None]:
        """Pause the candidate's worker while others run, or end it for good if no later step needs it."""
        if self.keeps_worker:
            return self.session.paused()
        self.worker.close()
        return nullcontext()


@contextmanager
def open_case(
    tools: EvaluationTools, task: CandidateTask, reference: Reference, seeds: Iterator[int]
) -> Iterator[CaseContext]:
    record, candidate, device = task.record, task.candidate, reference.device
    with record.phase("reference"):
        record.note_memory(reference.plan, plan_in_full(reference.need), device.measure_room())
        exercises = Exercises(reference, seeds, fully=task.run.is_checked_fully)
        if reference.computes_on is not None:
            exercises.make_ahead()
    record.findings += _note_variation(reference)
    training = (("mode", "training"),) if reference.loaded.problem.training else ()
    seeded = (("call_seeds", "torch seeded anew before each call"),) if reference.draws_numbers else ()
    record.calls = (*training, *seeded)
    limits = tools.builds.reduce_limits(tools.settings.limits, candidate)
    answer_build = tools.builds.answer_for(record, candidate)
    with ExitStack() as worker:
        opened = tools.workers.open_candidate(candidate, reference, answer_build, limits=limits)
        session = worker.enter_context(opened)
        case = CaseContext(
            tools=tools,
            task=task,
            reference=reference,
            seeds=seeds,
            exercises=exercises,
            session=session,
            worker=worker,
        )
        tools.workers.prepare(reference, case.is_attributed and task.run.is_first, case.is_timed)
        yield case


def check_addresses(case: CaseContext) -> StepResult:
    tools, task = case.tools, case.task
    if not (tools.settings.asan and task.subject.language == CPU_LANGUAGE and task.run.is_first):
        return NOTHING
    with case.record.phase("addresses"):
        found = call_under_sanitizer(tools.workers, task.candidate, case.reference, next(case.seeds))
    outcome = Outcome.RUNTIME_ERROR if found.severity == "fatal" else None
    return StepResult(findings=(found,), outcome=outcome, message=found.message)


def check_outputs(case: CaseContext) -> StepResult:
    """Construct the candidate and compare its outputs for fresh secret inputs with the truth."""
    record, task, reference, session = case.record, case.task, case.reference, case.session
    explained = explained_by_kernels(session, record.findings) if case.tools.is_emulated else nullcontext()
    with explained:
        with record.phase("load"):
            weights = construct_model(session, reference)
        with record.phase("correctness"):
            result = check_correctness(session, case.exercises, weights, is_timed=case.is_timed)
        record.add_result(result, task.run.name)
    record.check_builds()
    findings = list(case.tools.workers.keep_compiled(task.candidate, session))
    if reference.format_bits and task.run.is_first:
        findings += warn_of_narrow_formats(task.candidate.source, task.problem.source, reference.format_bits)
    case.reference = case.exercises.add_timed_steps()
    return StepResult(findings=tuple(findings))


def wait_for_quiet(case: CaseContext) -> StepResult:
    with case.session.paused():
        case.worker.enter_context(case.tools.quiet())
        if case.is_timed:
            case.tools.find_peaks(case.task)
    return NOTHING


def probe_robustness(case: CaseContext) -> StepResult:
    """Call with other layouts, shapes and values. Failures are only findings unless the problem requires them."""
    record, task = case.record, case.task
    if record.correctness is None or not case.reference.plan.probes or not task.run.is_first:
        return NOTHING
    with record.phase("probes"):
        found = probe_candidate(
            case.session,
            case.reference,
            case.seeds,
            record.correctness,
            record.phases_s.get("correctness", 0.0),
            may_recompile=not LANGUAGES[task.subject.language].writes_kernels,
        )
    return StepResult(findings=tuple(found))


def attribute_time(case: CaseContext) -> StepResult:
    """Find the share of time in custom kernels, and whether the outputs depend on them."""
    record, task, reference = case.record, case.task, case.reference
    if record.builds and not record.built:
        return NOTHING
    has_kernel = bool(record.built or task.kernels)
    if case.replayed_kernels is not None:
        custom = case.describe_custom_kernels()
        result = attribute_replayed(case.replayed_kernels, reference, custom, has_kernel=has_kernel)
        return replace(result, findings=case.task.run.name_findings(result.findings))
    if not case.is_attributed:
        if case.is_timed and not case.is_replayed and has_kernel:
            case.samples = _make_samples(case)
        return NOTHING
    with record.phase("work"), case.set_worker_aside():
        result = attribute_work(
            lambda mode: case.tools.workers.open_candidate(task.candidate, reference, mode=mode),
            reference,
            reference.make_inputs(next(case.seeds)),
            case.describe_custom_kernels(),
            has_kernel=has_kernel,
        )
    if case.is_timed and case.is_replayed:
        custom = case.describe_custom_kernels()
        result = confirm_recorded_code(result, case.recorded_functions, reference, custom)
        return replace(result, findings=task.run.name_findings(result.findings))
    if not reference.device.is_timed:
        return replace(result, work=None)
    if (
        not case.is_replayed
        and LANGUAGES[task.subject.language].writes_kernels
        and _may_have_custom_code(result, has_kernel)
    ):
        case.samples = _make_samples(case)
    return result


def _make_samples(case: CaseContext) -> CodeSamples:
    is_required = case.reference.loaded.problem.requires_kernel
    return CodeSamples(random.Random(next(case.seeds)), case.task.libraries, is_required=is_required)


def _may_have_custom_code(result: StepResult, has_kernel: bool) -> bool:
    return has_kernel or result.work is None or result.work.custom > 0


def confirm_custom_kernels(case: CaseContext) -> StepResult:
    """Find on a CPU how much of the time of calls custom code takes."""
    work, samples, timing = case.record.work, case.samples, case.record.timing
    if case.is_replayed or (work is None and samples is None):
        return NOTHING
    is_fast = timing is not None and timing.verdict == "faster"  # samples between timed calls, if any, give its share
    sampled = samples.share(work) if samples is not None and is_fast else None
    if samples is not None and (samples.is_open if sampled else not samples.is_enough()):
        with case.record.phase("work"), _open_constructed(case) as session:
            samples.make_calls(session, case.reference, case.seeds)
    if samples is not None:
        sampled = sampled or samples.share(work)
    if work is None:
        return StepResult(work=sampled)
    if sampled is None:
        case.record.set_profile_aside()
    return confirm_custom_code(case.reference, work, sampled, samples)


def read_counters(case: CaseContext) -> StepResult:
    work, tools = case.record.work, case.tools
    if work is None or not (tools.settings.profile and case.is_replayed and case.task.run.is_first):
        return NOTHING
    custom = name_custom_kernels(work.custom_kernels, case.task.libraries)
    with case.record.phase("counters"), case.set_worker_aside():
        read = count_in_hardware(tools.workers, case.task.candidate, case.reference, next(case.seeds), custom)
    return StepResult(counters=read)


def _open_constructed(case: CaseContext) -> AbstractContextManager[ModelSession]:
    if case.keeps_worker:
        return nullcontext(case.session)
    case.worker.close()
    return case.tools.workers.open_constructed_candidate(case.task.candidate, case.reference)


def _note_variation(reference: Reference) -> tuple[Finding, ...]:
    if reference.variation is None:
        return ()
    message = (
        f"two runs of the reference on the same inputs differ: {reference.variation}; outputs are compared within the "
        "tolerance, not bit by bit"
    )
    return (Finding(check="reference_varies", severity="note", message=message),)
