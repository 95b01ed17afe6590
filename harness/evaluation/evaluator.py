"""Evaluates one candidate: build, load, check correctness, attribute time, measure time, conclude.

A candidate that fails gets an outcome. Faults of the problem, the harness or the machine end as `problem_error`,
`harness_error` or `not_run`, which never count against a model.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace

from harness.builder import Builder
from harness.domain import (
    FIDELITY,
    NOTHING_AHEAD,
    BuiltAhead,
    Candidate,
    Evaluation,
    Finding,
    HarnessError,
    Outcome,
    Problem,
    Rival,
    Subject,
    Work,
    WorkloadName,
)
from harness.evaluation.attempts import evaluate_with_repetition
from harness.evaluation.builds import CandidateBuilds
from harness.evaluation.cases import WHOLE, CaseRun, list_runs, put_smallest_first
from harness.evaluation.certificate import Certificate
from harness.evaluation.chosen_dtype import require_dtype
from harness.evaluation.correctness.calls import Exercises
from harness.evaluation.correctness.checks import check_correctness
from harness.evaluation.correctness.reference import Reference, describe_calls, note_variation
from harness.evaluation.correctness.robustness import probe_candidate
from harness.evaluation.counters.reading import CounterReader
from harness.evaluation.emulated.findings import has_race_at_all_sizes
from harness.evaluation.emulated.nvcc import NvccCheck
from harness.evaluation.emulated.other_sizes import evaluate_with_other_sizes
from harness.evaluation.emulated.sanitizer import KernelChecker, explain, explained_by_kernels
from harness.evaluation.emulated.unsupported import excuse_unsupported
from harness.evaluation.environment import describe_environment
from harness.evaluation.integrity.attribution import (
    WorkResult,
    attribute_work,
    confirm_custom_code,
    name_custom_kernels,
)
from harness.evaluation.integrity.missing_packages import explaining_missing_packages
from harness.evaluation.integrity.sandbox_causes import note_output
from harness.evaluation.integrity.static_checks import screen_source, warn_of_narrow_formats
from harness.evaluation.load_check import find_load_error, load_only
from harness.evaluation.model_construction import construct_model
from harness.evaluation.model_workers import ModelWorkers
from harness.evaluation.prepared_references import PreparedReferences
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.rivals import compare_with_rival
from harness.evaluation.settings import EvaluationSettings
from harness.evaluation.timing.apart import await_idle
from harness.evaluation.timing.candidate_timing import CandidateTimer
from harness.evaluation.timing.clocks import TimingResult
from harness.evaluation.timing.device_peaks import PeakStore
from harness.evaluation.timing.noise_floor import NoiseFloors
from harness.evaluation.timing.replay_timing import record_call
from harness.evaluation.timing.roofline import Roofline
from harness.languages import LANGUAGES
from harness.problems.apart import read_init_inputs
from harness.problems.loading import LoadedProblem, load_problem
from harness.problems.shrink import REDUCED, describe_sizes, has_own_sizes
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.gpu.recording import NotReplayable, Recording
from harness.sandbox.memory_plan import plan_in_full
from harness.sandbox.model_session import ModelSession
from harness.sandbox.workers_ahead import WorkersAhead

EXPLAINABLE = (Outcome.WRONG_VALUE, Outcome.RUNTIME_ERROR)  # the sanitizer may find the cause


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    record: EvaluationRecord
    problem: Problem
    subject: Subject
    candidate: Candidate
    ahead: BuiltAhead
    run: CaseRun = WHOLE
    rival: Rival | None = None


class CandidateEvaluator:
    """`device` None: candidates are only built and loaded. `checker`: the sanitizer; its findings decide only on an
    emulated device, where `compiler` is asked at the end whether nvcc accepts the sources. `prebuild` is
    thread-safe, and `evaluate` where nothing is timed. Timing runs inside `quiet`, which may wait for builds."""

    def __init__(
        self,
        *,
        device: Device | None,
        builder: Builder,
        workers: WorkersAhead,
        settings: EvaluationSettings,
        noise: NoiseFloors | None = None,
        peaks: PeakStore | None = None,
        certificate: Certificate | None = None,
        checker: KernelChecker | None = None,
        compiler: Builder | None = None,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
        prepared: PreparedReferences | None = None,
    ) -> None:
        self._quiet = quiet
        self._prepared = prepared or PreparedReferences(workers)
        self._device = device
        self._checker = checker
        self._nvcc = None if compiler is None else NvccCheck(compiler)
        self._certificate = certificate
        self._forkserver = workers.forkserver
        self._settings = settings
        self._peaks = peaks or PeakStore(None)
        self._roofline = Roofline(self._peaks)
        self._is_emulated = device is not None and device.is_emulated
        self._builds = CandidateBuilds(builder, checker, self._nvcc, builds_beside=self._is_emulated)
        self._workers = ModelWorkers(workers, self._builds, settings.limits)
        self._counters = CounterReader(workers.forkserver, self._builds)
        facts = describe_environment(builder.toolchain, device)
        self._environment = facts if settings.fidelity == "full" else (*facts, (FIDELITY, settings.fidelity))
        floors = (noise or NoiseFloors(None)) if settings.measure_noise else None
        self._timer = CandidateTimer(self._workers, settings, floors, dict(self._environment))

    def evaluate(
        self,
        subject: Subject,
        problem: Problem,
        candidate: Candidate | None,
        *,
        seed: int | None = None,
        ahead: BuiltAhead = NOTHING_AHEAD,
        rival: Rival | None = None,
    ) -> Evaluation:
        """Raises only exceptions that must stop everything, such as KeyboardInterrupt. The `seed` of an earlier
        evaluation repeats its inputs and weights. A timed candidate is compared with the `rival`."""

        def attempt(record: EvaluationRecord) -> None:
            if candidate is None:
                raise CandidateFailure(Outcome.NO_CODE, "no program that defines ModelNew was found in the answer")
            task = _Task(record=record, problem=problem, subject=subject, candidate=candidate, ahead=ahead, rival=rival)
            with (
                explaining_missing_packages(problem, emulated=self._is_emulated),
                require_dtype(problem, self._device),
                self._workers.ahead.stopped_at_end(),
            ):
                self._evaluate_candidate(task)

        self._builds.add_ahead(ahead, candidate)
        self._workers.begin("" if candidate is None else candidate.source)
        record = EvaluationRecord(seed=secrets.randbits(62) if seed is None else seed)
        record, outcome, message = evaluate_with_repetition(record, attempt, self._device)
        decided = has_race_at_all_sizes(record.findings)  # nvcc takes a minute
        if self._nvcc is not None and not decided and self._nvcc.find_disagreement(record):
            again = EvaluationRecord(seed=record.seed, thrift=record.thrift)
            record, outcome, message = evaluate_with_repetition(again, attempt, self._device)
        record.findings += self._forkserver.isolation_warnings()
        record.findings += note_output(self._forkserver.take_printed_bytes())
        level = self._forkserver.isolation
        return record.conclude(
            subject,
            outcome,
            message,
            environment=self._environment,
            isolation=level,
            certificate="" if self._certificate is None else self._certificate.digest_behind(level),
        )

    def prebuild(self, problem: Problem, workload: WorkloadName, candidate: Candidate) -> BuiltAhead:
        """Loads the candidate once to fill the build cache."""
        record, hung = EvaluationRecord(seed=0), False
        if find_load_error(candidate.source) is None:
            try:
                self._load_only(record, problem, workload, candidate)
            except CandidateFailure as failure:
                hung = failure.outcome is Outcome.TIMEOUT
            except HarnessError:
                pass  # occurs again, and is recorded, in the evaluation
        return BuiltAhead(builds={build.key: build for build in record.builds}, hung=hung)

    def _require_builds(self, task: _Task) -> None:
        """Raises CandidateFailure if the candidate needs extensions that failed. Does not use the GPU."""
        attempt = EvaluationRecord(seed=task.record.seed)
        try:
            self._load_only(attempt, task.problem, task.subject.workload, task.candidate)
        except CandidateFailure:
            task.record.add_builds_of(attempt)
            raise

    def _evaluate_candidate(self, task: _Task) -> None:
        """Raises CandidateFailure on any outcome but correct."""
        record, problem, subject, candidate = task.record, task.problem, task.subject, task.candidate
        load_error = find_load_error(candidate.source)
        if load_error is not None:
            raise CandidateFailure(Outcome.LOAD_ERROR, load_error)
        device, rules = self._device, LANGUAGES[subject.language]
        record.findings += screen_source(candidate.source, may_compile=not rules.writes_kernels)
        if not rules.writes_kernels:
            problem = replace(problem, requires_kernel=False)
        missing = rules.find_missing(self._is_emulated)
        if missing is not None:
            raise CandidateFailure(Outcome.NOT_RUN, missing)
        if device is None:
            self._load_only(record, problem, subject.workload, candidate)
            reason = f"language {subject.language} runs on {' or '.join(rules.devices)}, and not on the chosen device"
            raise CandidateFailure(Outcome.NOT_RUN, f"{record.describe_builds()}, but {reason} (--device, --language)")

        def evaluate(attempt: EvaluationRecord, resized: Problem) -> None:
            resized_task = replace(task, record=attempt, problem=resized)
            attempt.sizes = describe_sizes(resized, REDUCED) if subject.workload == REDUCED else ""
            if device.is_emulated:
                self._compile_kernels(resized_task)
                if not rules.is_emulated:
                    only = f"the emulated device only compiles kernels of language {subject.language}"
                    raise CandidateFailure(Outcome.NOT_RUN, f"{only}: it needs a GPU")
            self._evaluate_workload(device, resized_task)

        if device.is_cuda and any(build.extension is None for build in task.ahead.builds.values()):
            self._require_builds(task)
        evaluate_with_other_sizes(
            record, problem, subject.workload, candidate.source, evaluate, cost=rules.emulation_cost
        )
        if device.is_emulated and not has_own_sizes(problem, subject.workload):
            self._check_launch_limits(task)

    def _evaluate_workload(self, device: Device, task: _Task) -> None:
        """The method for each case, the smallest first, then the sanitizer at the sizes of the first."""
        problem, workload, record = task.problem, task.subject.workload, task.record
        runs = list_runs(problem, workload, record.seed)
        with record.in_order([run.name for _, run in runs]):
            for chosen, run in put_smallest_first(runs, workload):
                with record.at_case(run):
                    self._evaluate_case(device, replace(task, problem=chosen, run=run))
        if record.cases:
            record.combine_cases()
        self._sanitize_kernels(replace(task, problem=runs[0][0]), decides=device.is_emulated)

    def _evaluate_case(self, device: Device, task: _Task) -> None:
        try:
            self._run_method(device, task, load_problem(task.problem, task.subject.workload, device.torch_device))
        except CandidateFailure as failure:
            if failure.outcome in EXPLAINABLE:
                self._sanitize_kernels(task, decides=False)
            if device.is_emulated:
                excuse_unsupported(task.candidate.source, failure, LANGUAGES[task.subject.language].modules)
            raise

    def _run_method(self, device: Device, task: _Task, loaded: LoadedProblem) -> None:
        """Load, check correctness, attribute time, measure time, probe robustness."""
        if device.is_cuda:
            await_idle(device)  # work of the previous candidate may still run
            if self._times(device, task) and self._peaks.look_up(device) is None:
                with self._quiet():
                    self._find_device_peaks(task, device)
        seeds = task.record.draw_seeds(task.run.name)
        with ExitStack() as stack:
            with task.record.phase("reference"):
                borrowed = self._prepared.borrow(loaded, device, (next(seeds), next(seeds)), task.record.thrift)
                reference = stack.enter_context(borrowed)
            self._evaluate_beside(task, reference, seeds)

    def _evaluate_beside(self, task: _Task, reference: Reference, seeds: Iterator[int]) -> None:
        device, replayed = reference.device, None
        with self._load_candidate(task, reference, seeds) as (session, exercises):
            with explained_by_kernels(session, task.record.findings) if device.is_emulated else nullcontext():
                self._check_correctness(task, session, exercises)
            reference = replace(reference, timed_steps=exercises.list_timed_steps())
            if not device.is_cuda and reference.plan.baseline_beside:
                with ExitStack() as stack:
                    with session.paused():
                        stack.enter_context(self._quiet())
                        self._find_device_peaks(task, device)
                    self._measure_in_same_worker(task, session, reference, seeds)
                return
            with self._record_call(task, session, reference, seeds) as recorded:
                self._probe_robustness(task, session, reference, seeds)
                if recorded is not None:
                    replayed = self._replay(task, recorded, reference, seeds)
        self._measure_in_fresh_workers(task, reference, seeds, replayed)

    @contextmanager
    def _load_candidate(
        self, task: _Task, reference: Reference, seeds: Iterator[int]
    ) -> Iterator[tuple[ModelSession, Exercises]]:
        record, candidate, device = task.record, task.candidate, reference.device
        with record.phase("reference"):
            record.note_memory(reference.plan, plan_in_full(reference.need), device.measure_room())
            exercises = Exercises(reference, seeds, fully=task.run.is_checked_fully)
            if reference.computes_on is not None:
                exercises.make_ahead()
        record.findings += note_variation(reference)
        record.calls = describe_calls(reference)
        limits = self._builds.reduce_limits(self._settings.limits, candidate)
        answer_build = self._builds.answer_for(record, candidate)
        opened = self._workers.open_candidate(candidate, reference, answer_build, limits=limits)
        with record.blaming_builds(), opened as session:
            self._workers.prepare(reference, self._attributes(task), self._times(device, task))
            yield session, exercises
        record.check_builds()

    def _check_correctness(self, task: _Task, session: ModelSession, exercises: Exercises) -> None:
        record, reference = task.record, exercises.reference
        with record.phase("load"):
            weights = construct_model(session, reference)
        with record.phase("correctness"):
            result = check_correctness(session, exercises, weights)
        record.add_correctness(result.correctness, task.run.name)
        record.add_result(result)
        if reference.format_bits and task.run.is_first:
            record.findings += warn_of_narrow_formats(task.candidate.source, task.problem.source, reference.format_bits)
        record.findings += self._workers.keep_compiled(task.candidate, session)

    def _measure_in_same_worker(
        self, task: _Task, session: ModelSession, reference: Reference, seeds: Iterator[int]
    ) -> None:
        """On a CPU. The worker is stopped while others run."""
        record = task.record
        if self._attributes(task):
            with record.phase("work"), session.paused():
                self._attribute_time(task, reference, next(seeds))
        if self._times(reference.device, task):
            timer = self._timer.for_run(task.run)
            with record.phase("timing"):
                result = timer.time_session(session, reference, task.subject.baseline, seeds)
            with record.phase("plausibility"), session.paused():
                self._check_roofline(task, result, reference, next(seeds))
            self._compare(task, lambda rival: timer.compare_session(session, reference, rival, result.timing, seeds))
        if record.work is not None and self._attributes(task):
            with record.phase("work"):
                self._confirm_custom_code(record, session, reference, seeds)
        self._probe_robustness(task, session, reference, seeds)

    @contextmanager
    def _record_call(
        self, task: _Task, session: ModelSession, reference: Reference, seeds: Iterator[int]
    ) -> Iterator[Recording | NotReplayable | None]:
        """None: not timed, or not on a GPU."""
        if not reference.device.is_cuda or not self._times(reference.device, task):
            yield None
            return
        with ExitStack() as stack:
            try:
                with task.record.phase("recording"):
                    opened = record_call(lambda: nullcontext(session), reference, seeds)
                    recorded: Recording | NotReplayable = stack.enter_context(opened)
            except NotReplayable as reason:
                recorded = reason
            yield recorded

    def _replay(
        self, task: _Task, recorded: Recording | NotReplayable, reference: Reference, seeds: Iterator[int]
    ) -> TimingResult | NotReplayable:
        """Ends the candidate's worker."""
        with self._quiet():
            self._find_device_peaks(task, reference.device)
            with task.record.phase("timing"):
                return self._timer.for_run(task.run).replay(recorded, reference, task.subject.baseline, seeds)

    def _measure_in_fresh_workers(
        self,
        task: _Task,
        reference: Reference,
        seeds: Iterator[int],
        replayed: TimingResult | NotReplayable | None = None,
    ) -> None:
        """On a GPU, and where two workers do not fit into memory. `replayed`: timed already, or the reason why not."""
        record, device = task.record, reference.device
        if self._attributes(task):
            with record.phase("work"):
                self._attribute_time(task, reference, next(seeds))
        if record.work is not None and self._attributes(task) and not device.is_cuda:
            with record.phase("work"), self._workers.open_constructed_candidate(task.candidate, reference) as session:
                self._confirm_custom_code(record, session, reference, seeds)
        if self._times(device, task):
            timer = self._timer.for_run(task.run)
            if isinstance(replayed, TimingResult):
                result = replayed
            else:
                with self._quiet():
                    self._find_device_peaks(task, device)
                    with record.phase("timing"):
                        result = timer.time_in_fresh_workers(
                            task.candidate, reference, task.subject.baseline, seeds, replayed
                        )
            with record.phase("plausibility"):
                self._check_roofline(task, result, reference, next(seeds))
            with self._quiet():
                self._compare(
                    task, lambda rival: timer.compare_in_fresh_workers(task.candidate, reference, rival, seeds)
                )
        if record.work is not None and device.is_cuda and self._settings.read_counters and task.run.is_first:
            with record.phase("counters"):
                self._read_counters(task, record.work, reference, next(seeds))

    def _read_counters(self, task: _Task, work: Work, reference: Reference, seed: int) -> None:
        custom = name_custom_kernels(work.custom_kernels, _list_libraries(task.record))
        task.record.counters = self._counters.read(task.candidate, reference, seed, custom)

    def _attribute_time(self, task: _Task, reference: Reference, seed: int) -> None:
        record = task.record
        if record.builds and not record.built:
            return
        result = attribute_work(
            lambda mode: self._workers.open_candidate(task.candidate, reference, mode=mode),
            reference,
            reference.make_inputs(seed),
            record.built,
            source=task.candidate.source,
            libraries=_list_libraries(record),
            kernels=_list_kernels(task),
            writes_kernels=LANGUAGES[task.subject.language].writes_kernels,
        )
        if not reference.device.is_emulated:  # emulated times mean nothing
            record.work = result.work
        record.add_result(result)

    def _confirm_custom_code(
        self, record: EvaluationRecord, session: ModelSession, reference: Reference, seeds: Iterator[int]
    ) -> None:
        if record.work is None:
            return
        result = confirm_custom_code(session, reference, seeds, WorkResult(work=record.work))
        record.work = result.work
        record.add_result(result)

    def _check_roofline(self, task: _Task, result: TimingResult, reference: Reference, seed: int) -> None:
        record, examined = task.record, self._roofline.examine(result.timing, reference, seed)
        record.timing, record.roofline = result.timing, examined.roofline
        found = [one for one in (*result.findings, *examined.findings) if one not in record.findings]
        record.findings += map(task.run.name_finding, found)
        for verdict in (result, examined):
            if verdict.outcome is not None:
                raise CandidateFailure(verdict.outcome, verdict.message)

    def _compare(self, task: _Task, measure: Callable[[Candidate], TimingResult]) -> None:
        rival = task.rival
        if rival is not None:
            compare_with_rival(task.record, task.run, rival, lambda: measure(rival.candidate))

    def _probe_robustness(self, task: _Task, session: ModelSession, reference: Reference, seeds: Iterator[int]) -> None:
        """Last in its worker, since a probe may crash the candidate."""
        record = task.record
        with record.phase("probes"):
            if record.correctness is not None and reference.plan.probes and task.run.is_first:
                spent_s = record.phases_s.get("correctness", 0.0)
                may_recompile = not LANGUAGES[task.subject.language].writes_kernels
                record.findings += probe_candidate(
                    session, reference, seeds, record.correctness, spent_s, may_recompile=may_recompile
                )

    def _times(self, device: Device, task: _Task) -> bool:
        return self._settings.measure_time and task.run.is_timed and not device.is_emulated

    def _attributes(self, task: _Task) -> bool:
        return self._settings.attribute_work and task.run.is_first

    def _find_device_peaks(self, task: _Task, device: Device) -> None:
        """The device must be idle."""
        if self._times(device, task):
            with task.record.phase("ceilings"):
                self._peaks.find(device)

    def _sanitize_kernels(self, task: _Task, *, decides: bool) -> None:
        """Without `decides` it only adds warnings."""
        record = task.record
        builds_cuda = any(request.needs_cuda for request in record.built)
        runs_host_code = self._is_emulated and bool(record.built)
        if self._checker is None or not (builds_cuda or runs_host_code or _list_kernels(task)):
            return
        with record.phase("kernels"):
            checked = self._checker.check(task.problem, task.subject.workload, task.candidate, record.draw_seeds())
        record.findings += checked.findings if decides else explain(checked.findings)
        if decides and builds_cuda and self._nvcc is None:
            message = "not compiled with nvcc (not found, or disabled), which may reject what the emulator accepts"
            record.findings.append(Finding(check="nvcc", severity="note", message=message))
        if decides and checked.outcome is not None:
            raise CandidateFailure(checked.outcome, checked.message)

    def _compile_kernels(self, task: _Task) -> None:
        """Those of a language that has a compiler of its own."""
        if self._checker is not None and _list_kernels(task):
            with task.record.phase("build"):
                task.record.findings += self._checker.compilation.check(
                    task.problem, task.subject.workload, task.candidate
                )

    def _check_launch_limits(self, task: _Task) -> None:
        """At the problem's own sizes, where smaller ones were evaluated."""
        if self._checker is not None and any(request.needs_cuda for request in task.record.built):
            with task.record.phase("kernels"):
                task.record.findings += self._checker.launches.check(task.problem, task.candidate)

    def _load_only(
        self, record: EvaluationRecord, problem: Problem, workload: WorkloadName, candidate: Candidate
    ) -> None:
        load_only(
            record,
            read_init_inputs(problem, workload),
            candidate,
            forkserver=self._forkserver,
            device=self._device,
            answer_build=self._builds.answer_for(record, candidate, ahead=True),
            limits=self._settings.limits,
        )


def _list_libraries(record: EvaluationRecord) -> list[str]:
    return [build.extension for build in record.builds if build.extension is not None]


def _list_kernels(task: _Task) -> tuple[str, ...]:
    return LANGUAGES[task.subject.language].list_kernels(task.candidate.source)
