"""Judges one candidate: screen, build, weights, correctness, timing; one Evaluation whatever happens.

A failing candidate is an outcome. What is our own or the machine's fault becomes `harness_error` or `not_run`, which
never count against a model.
"""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from harness.builder import Builder
from harness.domain import (
    EMULATED,
    BuildRequest,
    BuildResult,
    BuildToolError,
    Candidate,
    Evaluation,
    Finding,
    HarnessError,
    Outcome,
    Problem,
    ProblemTooLarge,
    Subject,
    Timing,
    WorkloadName,
)
from harness.evaluation.allocation_failure import MemoryCharge, forget_frames
from harness.evaluation.correctness.calls import Exercises
from harness.evaluation.correctness.checks import check_correctness
from harness.evaluation.correctness.reference import ENTRY, Reference, prepare_reference, usable_threads
from harness.evaluation.correctness.robustness import probe_candidate
from harness.evaluation.emulated.sanitizer import KernelChecker, explain, explained_by_kernels, reconcile_builds
from harness.evaluation.emulated.unsupported import find_uncovered
from harness.evaluation.environment import describe_environment
from harness.evaluation.integrity.attribution import WorkResult, attribute_work, confirm_own_code
from harness.evaluation.integrity.static_checks import find_syntax_error, screen_source
from harness.evaluation.load_check import CANDIDATE_ENTRY, load_only
from harness.evaluation.record import Case
from harness.evaluation.timing.apart import ApartTimer
from harness.evaluation.timing.clocks import TimingResult
from harness.evaluation.timing.device_peaks import CeilingStore
from harness.evaluation.timing.noise_floor import NoiseFloors, NoiseKey
from harness.evaluation.timing.paired import PairedTimer, TimingPlan, shorten_plan
from harness.evaluation.timing.roofline import Roofline
from harness.evaluation.timing.window_timing import WindowTimer, await_idle
from harness.languages import LANGUAGES
from harness.problems.loading import LoadedProblem, load_problem, workload_source
from harness.problems.shrink import (
    EMULATED_BUDGET,
    PATIENT_BUDGET,
    REDUCED,
    describe_sizes,
    has_own_sizes,
    list_milder_sizes,
)
from harness.sandbox.build_requests import AnswerBuild
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.memory_limits import is_out_of_memory, limit_worker
from harness.sandbox.memory_plan import plan_in_full
from harness.sandbox.model_session import ModelSession, TimeLimits
from harness.sandbox.opening import open_session
from harness.sandbox.worker_client import Mode
from harness.store.certificate import Certificate

HINTED = (Outcome.WRONG_VALUE, Outcome.RUNTIME_ERROR)  # what checked kernels may explain
DUE_TO_SIZES = (Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR)
SECOND_LOAD_SHARE = 1 / 8
REPEATED_CHECKS = ("device_busy", "pause")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """How candidates are judged. `measure_time` False stops after correctness; without `attribute_work` nobody asks
    whose code did the work, and a suite that requires kernels gets no answer. Without `measure_noise` the noise floor
    is that of the kind of device, not that of the problem."""

    limits: TimeLimits = field(default_factory=TimeLimits)
    plan: TimingPlan = field(default_factory=TimingPlan)
    measure_time: bool = True
    attribute_work: bool = True
    measure_noise: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltAhead:
    """What building a candidate ahead has found: its builds by key, and whether it hung while it was loaded."""

    builds: dict[str, BuildResult] = field(default_factory=dict)
    hung: bool = False


NOTHING_AHEAD = BuiltAhead()


class Judge:
    """Judges candidates on one device, one after another. `device` None: this machine has none for them.

    `checker` looks at CUDA kernels once more, emulated; what it finds decides only on an emulated device, where a
    `compiler` says in addition, after all else, whether nvcc takes them.

    `prebuild` may be called from several threads at once, `evaluate` too where nothing is timed. What is timed is timed
    inside `quiet`, which may wait for builds that share its cores.
    """

    def __init__(
        self,
        *,
        device: Device | None,
        builder: Builder,
        forkserver: Forkserver,
        settings: JudgeSettings,
        noise: NoiseFloors | None = None,
        ceilings: CeilingStore | None = None,
        certificate: Certificate | None = None,
        checker: KernelChecker | None = None,
        compiler: Builder | None = None,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._quiet = quiet
        self._device = device
        self._checker = checker
        self._compiler = compiler
        self._certificate = certificate
        self._builder = builder
        self._forkserver = forkserver
        self._settings = settings
        self._noise = noise or NoiseFloors(None)
        self._ceilings = ceilings or CeilingStore(None)
        self._roofline = Roofline(self._ceilings)
        self._built_ahead: dict[str, BuildResult] = {}
        self._by_compiler: dict[str, BuildResult] = {}  # emulated build -> what nvcc says of it, where that differs
        self._hung_ahead: set[str] = set()  # digests of candidates that timed out when they were built ahead
        self._environment = describe_environment(builder.toolchain, device)

    def evaluate(
        self,
        subject: Subject,
        problem: Problem,
        candidate: Candidate | None,
        *,
        seed: int | None = None,
        ahead: BuiltAhead = NOTHING_AHEAD,
    ) -> Evaluation:
        """The verdict. Raises only what must stop everything, such as KeyboardInterrupt. With the `seed` of an earlier
        evaluation inputs and weights are those of that one; without, nobody has seen them before."""
        self._built_ahead |= ahead.builds
        if ahead.hung and candidate is not None:
            self._hung_ahead.add(candidate.digest)
        case = Case(seed=secrets.randbits(62) if seed is None else seed)
        case, outcome, message = self._decide(case, problem, subject, candidate)
        if self._ask_compiler(case):
            again = Case(seed=case.seed, thrift=case.thrift)
            case, outcome, message = self._decide(again, problem, subject, candidate)
        case.findings += self._forkserver.isolation_warnings()
        level = self._forkserver.isolation
        return case.conclude(
            subject,
            outcome,
            message,
            environment=self._environment,
            confinement=level,
            certificate="" if self._certificate is None else self._certificate.digest_behind(level),
        )

    def _decide(
        self, case: Case, problem: Problem, subject: Subject, candidate: Candidate | None
    ) -> tuple[Case, Outcome, str]:
        """Outcome and message; what else was found is noted in the case, which is another one where the candidate was
        judged a second time: for a suspicion that may be chance, or with less memory."""
        outcome, message = self._attempt(case, problem, subject, candidate)
        if outcome is Outcome.SUSPECT and _may_be_chance(case):
            note = Finding(check="repeated", severity="note", message=f"judged a second time: {message[:300]}")
            case = Case(seed=secrets.randbits(62), findings=[note])
            # which waits first until the device is idle
            outcome, message = self._attempt(case, problem, subject, candidate)
        if case.is_short and case.thrift == "planned" and self._device is not None:
            case = case.repeat_smaller(outcome, message)
            outcome, message = self._attempt(case, problem, subject, candidate)
        return case, outcome, message

    def _attempt(
        self, case: Case, problem: Problem, subject: Subject, candidate: Candidate | None
    ) -> tuple[Outcome, str]:
        """Outcome and message of one evaluation, after which the evaluator holds nothing of it on the device."""
        try:
            self._judge(case, problem, subject, candidate)
            return Outcome.CORRECT, ""
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the evaluations after this one
            outcome, message = self._explain(case, error)
            forget_frames(error)
        finally:
            if self._device is not None:
                self._device.release_memory()
        return outcome, message

    def _explain(self, case: Case, error: Exception) -> tuple[Outcome, str]:
        """What an evaluation ends with that was ended by this."""
        if isinstance(error, CandidateFailure):
            case.findings += error.findings
            case.is_short = error.outcome is Outcome.OUT_OF_MEMORY
            return error.outcome, error.message
        case.is_short = is_out_of_memory(error)
        if isinstance(error, ProblemTooLarge | BuildToolError):
            return Outcome.NOT_RUN, str(error)
        if case.is_short:
            return Outcome.NOT_RUN, f"the evaluator ran out of device memory ({case.memory}): {error}"
        if isinstance(error, HarnessError):
            return Outcome.HARNESS_ERROR, str(error)
        message = f"unexpected {type(error).__name__}: {error}"
        evidence = "".join(traceback.format_exception(error))[-8000:]
        case.findings.append(Finding(check="harness", severity="fatal", message=message, evidence=evidence))
        return Outcome.HARNESS_ERROR, message

    def _ask_compiler(self, case: Case) -> bool:
        """What nvcc says of what was emulated, once all else is known. Whether it is something else: then the
        candidate is judged again, and told so when it asks for the build."""
        if self._compiler is None:
            return False
        differs = False
        with case.phase("nvcc"):
            for request, result in zip(case.requests, case.builds, strict=True):
                if not request.needs_cuda or result.lane != EMULATED or result.key in self._by_compiler:
                    continue
                try:
                    told = reconcile_builds(result, self._compiler.build(request))
                except HarnessError as error:
                    message = f"not compiled with nvcc: {error}"
                    case.findings.append(Finding(check="nvcc", severity="note", message=message))
                    continue
                if told is not result:
                    self._by_compiler[result.key] = told
                    differs = True
        return differs

    def prebuild(self, problem: Problem, workload: WorkloadName, candidate: Candidate) -> BuiltAhead:
        """Imports and constructs the candidate once, so that what it builds is in the cache. No verdict."""
        case, hung = Case(seed=0), False
        if find_syntax_error(candidate.source) is None:
            try:
                self._load_only(case, load_problem(problem, workload), candidate)
            except CandidateFailure as failure:
                hung = failure.outcome is Outcome.TIMEOUT
            except HarnessError:
                pass  # like any other failure here it is met again, and recorded, when the candidate is judged
        return BuiltAhead(builds={build.key: build for build in case.builds}, hung=hung)

    def _judge(self, case: Case, problem: Problem, subject: Subject, candidate: Candidate | None) -> None:
        if candidate is None:
            raise CandidateFailure(Outcome.NO_CODE, "no program that defines ModelNew was found in the answer")
        syntax_error = find_syntax_error(candidate.source)
        if syntax_error is not None:
            raise CandidateFailure(Outcome.LOAD_ERROR, syntax_error)
        case.findings += screen_source(candidate.source)
        if self._device is None:
            self._load_only(case, load_problem(problem, subject.workload), candidate)
            reason = f"this machine has no device for language {subject.language}"
            raise CandidateFailure(Outcome.NOT_RUN, f"{case.describe_builds()}, but {reason}")
        try:
            self._judge_at(self._device, case, problem, subject, candidate)
        except CandidateFailure as failure:
            may_be_sizes = subject.workload == REDUCED and failure.outcome in DUE_TO_SIZES
            if not may_be_sizes or problem.dynamic_shapes:
                raise
            again = self._judge_at_other_sizes(self._device, case, problem, subject, candidate)
            if again is None:
                raise
            message = f"wrong at {case.sizes} ({failure.outcome}: {failure.message[:300]}); right at {again.sizes}"
            again.findings.append(Finding(check="size_specialised", severity="warning", message=message))
            case.take_over(again)
        if self._device.is_emulated and not has_own_sizes(problem, subject.workload):
            self._check_launches(case, problem, candidate)

    def _judge_at_other_sizes(
        self, device: Device, case: Case, problem: Problem, subject: Subject, candidate: Candidate
    ) -> Case | None:
        """Where a candidate is right that failed at the sizes to which the problem was reduced: at ones more like the
        problem's own, for which alone it may be made."""
        wrong_at, is_own_wrong = [case.sizes], has_own_sizes(problem, REDUCED)
        for other in list_milder_sizes(problem, EMULATED_BUDGET, PATIENT_BUDGET):
            again = Case(seed=case.seed, findings=list(screen_source(candidate.source)))
            try:
                self._judge_at(device, again, other, subject, candidate)
            except CandidateFailure:
                wrong_at.append(again.sizes)
                is_own_wrong |= has_own_sizes(other, REDUCED)
                continue
            except HarnessError as error:
                message = f"could not be judged at {again.sizes}: {error}"
                case.findings.append(Finding(check="size_specialised", severity="note", message=message))
                continue
            return again
        if not is_own_wrong:
            message = f"wrong at {'; '.join(wrong_at)}; not judged at the problem's own sizes, for which it may be made"
            case.findings.append(Finding(check="size_specialised", severity="note", message=message))
        return None

    def _judge_at(self, device: Device, case: Case, problem: Problem, subject: Subject, candidate: Candidate) -> None:
        """With the sizes that the problem's workload has."""
        case.sizes = describe_sizes(problem, REDUCED) if subject.workload == REDUCED else ""
        try:
            self._judge_on(device, case, load_problem(problem, subject.workload), subject, candidate)
        except CandidateFailure as failure:
            if failure.outcome in HINTED:
                self._check_kernels(case, problem, subject, candidate, decides=False)
            if device.is_emulated:
                _excuse_uncovered(candidate, failure)
            raise
        self._check_kernels(case, problem, subject, candidate, decides=device.is_emulated)

    def _judge_on(
        self, device: Device, case: Case, loaded: LoadedProblem, subject: Subject, candidate: Candidate
    ) -> None:
        if device.is_cuda:
            await_idle(device)  # the candidate before may have left it work
            if self._times(device) and self._ceilings.look_up(device) is None:
                with self._quiet():
                    self._find_ceilings(case, device)
        with self._open_candidate(case, loaded, device, candidate) as (session, exercises, seeds):
            reference = exercises.reference
            with explained_by_kernels(session, case.findings) if device.is_emulated else nullcontext():
                self._check(case, session, exercises)
            if not device.is_cuda and reference.plan.baseline_beside:
                with ExitStack() as stack:
                    with session.paused():
                        stack.enter_context(self._quiet())
                        self._find_ceilings(case, device)
                    self._finish_beside(session, case, subject, candidate, reference=reference, seeds=seeds)
                return
            with case.phase("probes"):
                self._probe(case, session, reference, seeds)
        self._finish_apart(case, subject, candidate, reference=reference, seeds=seeds)

    def _finish_apart(
        self, case: Case, subject: Subject, candidate: Candidate, *, reference: Reference, seeds: Iterator[int]
    ) -> None:
        """What follows correctness, in fresh workers: on a GPU, and where two do not fit."""
        if self._settings.attribute_work:
            with case.phase("work"):
                self._attribute(case, candidate, reference, next(seeds))
        if case.work is not None and not reference.device.is_cuda:
            with case.phase("work"), self._open_again(candidate, reference) as session:
                self._confirm_own_code(case, session, reference, seeds)
        if self._times(reference.device):
            with self._quiet():
                self._find_ceilings(case, reference.device)
                with case.phase("timing"):
                    result = self._time_in_fresh_workers(candidate, reference, subject.baseline, seeds)
            with case.phase("plausibility"):
                self._take_down(case, result, reference, next(seeds))

    def _finish_beside(
        self,
        session: ModelSession,
        case: Case,
        subject: Subject,
        candidate: Candidate,
        *,
        reference: Reference,
        seeds: Iterator[int],
    ) -> None:
        """What follows correctness on a CPU, all of it in the worker that was judged or while that is stopped."""
        if self._settings.attribute_work:
            with case.phase("work"), session.paused():
                self._attribute(case, candidate, reference, next(seeds))
        if self._times(reference.device):
            with case.phase("timing"):
                result = self._time(session, reference, subject.baseline, seeds)
            with case.phase("plausibility"), session.paused():
                self._take_down(case, result, reference, next(seeds))
        if case.work is not None:
            with case.phase("work"):
                self._confirm_own_code(case, session, reference, seeds)
        with case.phase("probes"):
            self._probe(case, session, reference, seeds)

    def _find_ceilings(self, case: Case, device: Device) -> None:
        """To be called while nothing of the candidate runs, nor anything else."""
        if self._times(device):
            with case.phase("ceilings"):
                self._ceilings.find(device)

    def _times(self, device: Device) -> bool:
        return self._settings.measure_time and not device.is_emulated

    def _check_kernels(
        self, case: Case, problem: Problem, subject: Subject, candidate: Candidate, *, decides: bool
    ) -> None:
        """A second look at the kernels; one that does not decide may still explain."""
        if self._checker is None or not any(request.needs_cuda for request in case.built):
            return
        with case.phase("kernels"):
            checked = self._checker.check(problem, subject.workload, candidate, case.draw_seeds())
        case.findings += checked.findings if decides else explain(checked.findings)
        if decides and self._compiler is None:
            message = "not compiled with nvcc, which this machine lacks; it may refuse what is accepted here"
            case.findings.append(Finding(check="nvcc", severity="note", message=message))
        if decides and checked.outcome is not None:
            raise CandidateFailure(checked.outcome, checked.message)

    def _check_launches(self, case: Case, problem: Problem, candidate: Candidate) -> None:
        """What a GPU would not launch at the sizes that count, where others were judged."""
        if self._checker is not None and any(request.needs_cuda for request in case.built):
            with case.phase("kernels"):
                case.findings += self._checker.launches.check(problem, candidate)

    @contextmanager
    def _open_candidate(
        self, case: Case, loaded: LoadedProblem, device: Device, candidate: Candidate
    ) -> Iterator[tuple[ModelSession, Exercises, Iterator[int]]]:
        """The candidate in a worker, beside the judge's own reference and what it is tried with."""
        seeds = case.draw_seeds()
        with case.phase("reference"):
            reference = prepare_reference(loaded, device, next(seeds), next(seeds), thrift=case.thrift)
            case.note_memory(reference.plan, plan_in_full(reference.need), device.measure_room())
            exercises = Exercises(reference, seeds)
            if reference.computes_on is not None:
                exercises.make_ahead()
        case.findings += _note_variation(reference)
        case.calls = _describe_calls(reference)
        try:
            limits = self._limits_for(candidate)
            builds = self._answer_builds(case, candidate)
            with self._open(candidate.source, CANDIDATE_ENTRY, reference, builds, limits=limits) as session:
                yield session, exercises, seeds
        except CandidateFailure as failure:
            raise case.blame_build(failure) from failure
        case.check_builds()

    def _check(self, case: Case, session: ModelSession, exercises: Exercises) -> None:
        reference = exercises.reference
        with case.phase("load"):
            _construct(session, reference)
            weights = session.match_weights(reference.state)
        with case.phase("correctness"):
            result = check_correctness(session, exercises, weights)
        case.correctness = result.correctness
        case.findings += result.findings
        if result.outcome is not None:
            raise CandidateFailure(result.outcome, result.message)

    def _attribute(self, case: Case, candidate: Candidate, reference: Reference, seed: int) -> None:
        """Who did the work. A candidate none of whose extensions was built has lost already."""
        if case.builds and not case.built:
            return
        inputs = reference.make_inputs(seed)
        result = attribute_work(
            lambda mode: self._open(candidate.source, CANDIDATE_ENTRY, reference, self._builder.build, mode),
            reference,
            inputs,
            case.built,
            [result.extension for result in case.builds if result.extension is not None],
        )
        if not reference.device.is_emulated:  # there the shares of the time say nothing
            case.work = result.work
        case.findings += result.findings
        if result.outcome is not None:
            raise CandidateFailure(result.outcome, result.message)

    def _confirm_own_code(self, case: Case, session: ModelSession, reference: Reference, seeds: Iterator[int]) -> None:
        if case.work is None:
            return
        result = confirm_own_code(session, reference, seeds, WorkResult(work=case.work))
        case.work = result.work
        case.findings += result.findings
        if result.outcome is not None:
            raise CandidateFailure(result.outcome, result.message)

    def _probe(self, case: Case, session: ModelSession, reference: Reference, seeds: Iterator[int]) -> None:
        """What is only worth a warning comes last: the candidate may break on it."""
        if case.correctness is not None and reference.plan.probes:
            spent_s = case.phases_s.get("correctness", 0.0)
            case.findings += probe_candidate(session, reference, seeds, case.correctness.weights, spent_s)

    def _time(self, session: ModelSession, reference: Reference, baseline: str, seeds: Iterator[int]) -> TimingResult:
        floor = 0.0
        if self._settings.measure_noise:
            with session.paused():
                floor = self._noise.find(
                    self._name_noise(reference, baseline), lambda: self._time_itself(reference, baseline, seeds)
                )
        with self._open_baseline(reference, baseline) as opponent:
            timer = PairedTimer(
                baseline=opponent, candidate=session, reference=reference, plan=self._settings.plan, seed=next(seeds)
            )
            return timer.measure(baseline, seeds, floor)

    def _time_in_fresh_workers(
        self, candidate: Candidate, reference: Reference, baseline: str, seeds: Iterator[int]
    ) -> TimingResult:
        def open_baseline() -> AbstractContextManager[ModelSession]:
            return self._open_baseline(reference, baseline)

        def open_candidate() -> AbstractContextManager[ModelSession]:
            return self._open_again(candidate, reference)

        plan = self._settings.plan
        if not reference.plan.baseline_beside:
            apart = ApartTimer(reference=reference, plan=plan, seed=next(seeds))
            return apart.measure(baseline, open_baseline, open_candidate, seeds)
        floor = 0.0
        if self._settings.measure_noise:
            floor = self._noise.find(
                self._name_noise(reference, baseline), lambda: self._time_itself_in_windows(reference, baseline, seeds)
            )
        timer = WindowTimer(reference=reference, plan=plan, seed=next(seeds))
        return timer.measure(baseline, open_baseline, open_candidate, seeds, floor)

    @contextmanager
    def _open_again(self, candidate: Candidate, reference: Reference) -> Iterator[ModelSession]:
        """The candidate, constructed in a fresh worker."""
        limits, build = self._limits_for(candidate), self._builder.build
        opened = self._open(candidate.source, CANDIDATE_ENTRY, reference, build, limits=limits, is_timed=True)
        with opened as session:
            _construct(session, reference)
            session.match_weights(reference.state)
            session.hold_state(reference.changing)
            yield session

    def _time_itself_in_windows(self, reference: Reference, baseline: str, seeds: Iterator[int]) -> Timing:
        timer = WindowTimer(reference=reference, plan=self._settings.plan, seed=next(seeds))
        return timer.measure_equals(baseline, lambda: self._open_baseline(reference, baseline), seeds)

    def _take_down(self, case: Case, result: TimingResult, reference: Reference, seed: int) -> None:
        """Notes a timing, and what the limits of the device say of it."""
        examined = self._roofline.examine(result.timing, reference, seed)
        case.timing, case.plausibility = result.timing, examined.plausibility
        case.findings += (*result.findings, *examined.findings)
        for verdict in (result, examined):
            if verdict.outcome is not None:
                raise CandidateFailure(verdict.outcome, verdict.message)

    def _time_itself(self, reference: Reference, baseline: str, seeds: Iterator[int]) -> Timing:
        """The baseline against itself, in two processes as they are for a candidate."""
        plan = shorten_plan(self._settings.plan)
        with self._open_baseline(reference, baseline) as one, self._open_baseline(reference, baseline) as other:
            timer = PairedTimer(baseline=one, candidate=other, reference=reference, plan=plan, seed=next(seeds))
            return timer.measure(baseline, seeds).timing

    def _name_noise(self, reference: Reference, baseline: str) -> NoiseKey:
        facts = dict(self._environment)
        return NoiseKey(
            problem_digest=reference.loaded.problem.digest,
            workload=reference.loaded.workload,
            baseline=baseline,
            device_type=reference.device.torch_device.type,
            machine=" ".join(facts.get(name, "") for name in ("cpu", "threads", "gpu", "torch", "harness")),
        )

    @contextmanager
    def _open_baseline(self, reference: Reference, baseline: str) -> Iterator[ModelSession]:
        with self._open(workload_source(reference.loaded), ENTRY, reference, None, is_timed=True) as opponent:
            _construct(opponent, reference, compiled=baseline == "compile")
            opponent.match_weights(reference.state)
            opponent.hold_state(reference.changing)
            yield opponent

    @contextmanager
    def _open(
        self,
        source: str,
        entry: str,
        reference: Reference,
        answer_build: AnswerBuild | None,
        mode: Mode = "plain",
        *,
        limits: TimeLimits | None = None,
        is_timed: bool = False,
    ) -> Iterator[ModelSession]:
        """A worker with that program. Outputs of calls that `is_timed` stay on the device where two workers fit."""
        device, footprint = reference.device, reference.footprint
        planned_bytes = reference.need.count_worker_bytes(footprint.kept_calls) - footprint.arena_bytes
        device.release_cache()
        charge = MemoryCharge(device, planned_bytes, footprint.arena_bytes)
        is_ours = answer_build is None  # then what fails is no candidate's
        with (
            open_session(
                forkserver=self._forkserver,
                device=device,
                footprint=footprint,
                source=source,
                entry=entry,
                answer_build=answer_build,
                worker_limits=limit_worker(device.torch_device, footprint.arena_bytes),
                limits=limits or self._settings.limits,
                threads=usable_threads(),
                allow_tf32=reference.loaded.problem.allow_tf32,
                mode=mode,
                keeps_on_host=reference.computes_on is not None and not (is_timed and reference.plan.baseline_beside),
            ) as session,
            nullcontext() if is_ours else charge.charging(),
        ):
            yield session

    def _limits_for(self, candidate: Candidate) -> TimeLimits:
        """Short ones to load a candidate that has had its full time before, when it was built ahead."""
        limits = self._settings.limits
        share = SECOND_LOAD_SHARE if candidate.digest in self._hung_ahead else 1.0
        return replace(limits, start_s=limits.start_s * share, construct_s=limits.construct_s * share)

    def _load_only(self, case: Case, loaded: LoadedProblem, candidate: Candidate) -> None:
        load_only(
            case,
            loaded,
            candidate,
            forkserver=self._forkserver,
            device=self._device,
            answer_build=self._answer_builds(case, candidate, ahead=True),
            limits=self._settings.limits,
        )

    def _answer_builds(self, case: Case, candidate: Candidate, *, ahead: bool = False) -> AnswerBuild:
        def answer(request: BuildRequest) -> BuildResult:
            refusal = LANGUAGES[candidate.language].refuses(request)
            if refusal is not None:
                result = self._refuse(request, refusal)
                case.add_build(request, result)
                return result
            result = self._builder.build(request)
            result = self._by_compiler.get(result.key, result)
            if ahead and self._checker is not None and request.needs_cuda and result.extension is not None:
                self._checker.build_ahead(request)
            if result.status == "cached":
                # What was built ahead a moment ago: the record tells of the build itself, once.
                result = self._built_ahead.pop(result.key, result)
            case.add_build(request, result)
            return result

        return answer

    def _refuse(self, request: BuildRequest, reason: str) -> BuildResult:
        key, log = self._builder.key(request), f"error: {reason}"
        return BuildResult(key=key, status="refused", extension=None, log=log, duration_s=0.0)


def _may_be_chance(case: Case) -> bool:
    """Whether a suspicion follows from how busy the machine was: then it is confirmed in fresh workers."""
    return any(finding.check in REPEATED_CHECKS for finding in case.findings if finding.severity == "fatal")


def _note_variation(reference: Reference) -> tuple[Finding, ...]:
    if reference.variation is None:
        return ()
    message = (
        f"two runs of the reference on the same inputs differ: {reference.variation}; outputs are judged within the "
        "tolerance, not bit by bit"
    )
    return (Finding(check="reference_varies", severity="note", message=message),)


def _describe_calls(reference: Reference) -> tuple[tuple[str, str], ...]:
    """How calls differ from those of a module in evaluation mode, for the record."""
    training = (("mode", "training"),) if reference.loaded.problem.training else ()
    seeded = (("call_seeds", "torch seeded anew before each call"),) if reference.draws_numbers else ()
    return (*training, *seeded)


def _construct(session: ModelSession, reference: Reference, *, compiled: bool = False) -> None:
    training = reference.loaded.problem.training
    session.construct(reference.seed, reference.loaded.init_inputs, compiled=compiled, training=training)


def _excuse_uncovered(candidate: Candidate, failure: CandidateFailure) -> None:
    """Raises CandidateFailure (not_run) if what failed uses what the emulated device cannot do, by its source: what
    a worker says of that is not believed."""
    construct = find_uncovered(candidate.source)
    if construct is not None and failure.outcome in (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR):
        message = f"{construct} is not covered by the emulated device: {failure.message}"
        raise CandidateFailure(Outcome.NOT_RUN, message, failure.findings) from failure
