"""The steps of the method that measure time, and the choice of the timer for the device and the memory plan."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from harness.domain import (
    BaselineResult,
    Candidate,
    CandidateFailure,
    Comparison,
    Finding,
    Outcome,
    Rival,
    TimedBaseline,
    Timing,
)
from harness.evaluation.cases import CaseRun
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.integrity.attribution import CustomKernels
from harness.evaluation.integrity.code_samples import CodeSamples
from harness.evaluation.model_workers import BaselineFailure, ModelWorkers, sparing_memory
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.results import StepResult, TimingResult, WrongCall
from harness.evaluation.settings import TimingPlan, share_plan, shorten_plan
from harness.evaluation.steps import NOTHING, CaseContext
from harness.evaluation.timing.apart import ApartTimer, CallTime, Open, ReportedApartTimer, time_calls
from harness.evaluation.timing.block_statistics import interval_of
from harness.evaluation.timing.chosen_calls import find_wrong_call
from harness.evaluation.timing.paired import PairedTimer, pin_to_cores
from harness.evaluation.timing.recordings import keep_baseline, record_call, record_rival
from harness.evaluation.timing.replay_statistics import label_bound, relate_to_calls
from harness.evaluation.timing.system_conditions import NoiseKey
from harness.sandbox.gpu.recording import KeptBaseline, NotReplayable, Recording
from harness.sandbox.memory_limits import USABLE_SHARE
from harness.sandbox.model_session import ModelSession

if TYPE_CHECKING:
    from harness.evaluation.timing.replay_timing import Keep, ReplayTimer


def time_whole_calls(case: CaseContext) -> StepResult:
    """The time is shown beside device time and decides nothing; a wrong output does."""
    if not (case.is_timed and case.is_replayed and case.reference.has_full_plan):
        return NOTHING
    with case.quiet(), case.record.phase("timing"):
        timed = CandidateTimer(case).time_calls()
    case.call_us = timed.median_us
    if not timed.wrong:
        return NOTHING
    message = timed.wrong.message
    finding = Finding(check="timed_call", severity="fatal", message=message)
    return StepResult(findings=(finding,), outcome=Outcome.SUSPECT, message=message, wrong_call=timed.wrong)


def confirm_wrong_call(case: CaseContext, result: StepResult) -> StepResult:
    """Repeat a wrong timed call in a new worker without timing it: a program that is wrong again is not `suspect`."""
    seed = None if result.wrong_call is None else result.wrong_call.seed
    if seed is None:
        return result
    wrong = None
    with suppress(CandidateFailure), case.set_worker_aside():
        wrong = CandidateTimer(case).call_untimed(seed)
    if wrong is None:
        return result
    message = f"{wrong.reason} (on {case.reference.choose_timed_step(seed)} inputs)"
    finding = Finding(check="correctness", severity="fatal", message=message)
    others = tuple(one for one in result.findings if one.severity != "fatal")
    return replace(result, outcome=Outcome.WRONG_VALUE, message=message, findings=(*others, finding))


def record_gpu_work(case: CaseContext) -> StepResult:
    """The recorded call is valid while the worker lives."""
    if case.is_timed and case.is_replayed:
        try:
            with case.record.phase("recording"):
                given = case.reference, case.seeds
                opened = record_call(lambda: nullcontext(case.session), *given, may_read_back=True)
                case.recorded = case.worker.enter_context(opened)
        except NotReplayable as reason:
            case.recorded = reason
    return NOTHING


def measure_time(case: CaseContext) -> StepResult:
    if not case.is_timed:
        return NOTHING
    try:
        with case.quiet():
            timed = CandidateTimer(case).time(case.task.baselines[0])
    except BaselineFailure as failure:
        return StepResult(findings=(case.task.run.name_finding(failure.describe(case.task.baselines[0])),))
    with case.record.phase("roofline"), case.set_worker_aside():
        examined = case.tools.roofline.examine(timed.timing, case.reference, next(case.seeds))
    failed = next((one for one in (timed, examined) if one.outcome is not None), timed)
    return StepResult(
        findings=case.task.run.name_findings((*timed.findings, *examined.findings)),
        outcome=failed.outcome,
        message=failed.message,
        timing=timed.timing,
        roofline=examined.roofline,
        wrong_call=timed.wrong_call,
    )


def time_further_baselines(case: CaseContext) -> StepResult:
    """Each in a measurement of its own. Their failures are only findings; outputs of the candidate count as before."""
    findings: list[Finding] = []
    further: list[BaselineResult] = []
    for baseline in case.task.baselines[1:] if case.is_timed else ():
        try:
            timed = _time_further(case, baseline)
        except BaselineFailure as failure:
            findings.append(case.task.run.name_finding(failure.describe(baseline)))
            further.append(BaselineResult(name=baseline.name, reason=str(failure)))
            continue
        if timed.outcome is not None:
            return StepResult(
                findings=timed.findings, outcome=timed.outcome, message=timed.message, wrong_call=timed.wrong_call
            )
        further.append(BaselineResult(name=baseline.name, timing=replace(timed.timing, blocks=())))
    return StepResult(findings=tuple(findings), further=tuple(further))


@sparing_memory()
def _time_further(case: CaseContext, baseline: TimedBaseline) -> TimingResult:
    aside = nullcontext() if case.keeps_worker else case.set_worker_aside()
    with case.quiet(), aside, case.record.phase("baselines"):
        return CandidateTimer(case).time_further(baseline)


def compare_rival(case: CaseContext) -> StepResult:
    """Compare with the best earlier program of a search, which is untrusted, so this never changes the outcome."""
    rival = case.task.rival
    if rival is None or case.record.timing is None:
        return NOTHING
    with case.quiet(), nullcontext() if case.keeps_worker else case.set_worker_aside():
        compare_with_rival(case.record, case.task.run, rival, lambda: CandidateTimer(case).compare(rival.candidate))
    return NOTHING


def compare_with_rival(
    record: EvaluationRecord, run: CaseRun, rival: Rival, measure: Callable[[], TimingResult]
) -> None:
    """Measure a gain again, since equal programs may differ for the lifetime of their processes. Add None if the
    candidate is certainly slower in a case, its time is not confirmed, or a program failed.
    """
    if record.timing is None or run.is_secret:
        return
    comparison, doubt = None, ""
    if _may_gain(record.timing, rival, run) and all(one is not None for _, one in record.comparisons):
        try:
            with record.phase("comparison"):
                comparison, doubt = _measure_pairs(rival, measure)
                if comparison.is_gain:
                    again, doubt = _measure_pairs(rival, measure)
                    comparison = again if (again.speedup_low or 0.0) < (comparison.speedup_low or 0.0) else comparison
        except Exception as error:  # noqa: BLE001 - a hostile rival may cause any
            comparison, doubt = None, str(error)
    if doubt:
        note = Finding(check="comparison", severity="note", message=f"not compared with turn {rival.turn}: {doubt}")
        record.findings.append(run.name_finding(note))
    record.comparisons.append((run.weight, comparison))


def _measure_pairs(rival: Rival, measure: Callable[[], TimingResult]) -> tuple[Comparison, str]:
    result = measure()
    return summarise_pairs(rival, result), find_doubt(result)


def _may_gain(timing: Timing, rival: Rival, run: CaseRun) -> bool:
    return not timing.is_doubtful and timing.speedup_high > rival.speedup_lows.get(run.name, 0.0)


def find_doubt(result: TimingResult) -> str:
    if result.outcome is None and not result.timing.is_doubtful:
        return ""
    return result.message or f"the time in these pairs is {result.timing.verdict}"


def summarise_pairs(rival: Rival, result: TimingResult) -> Comparison:
    """The rival takes the baseline's place. Omit values if the pairs are not meaningful."""
    timing = result.timing
    if find_doubt(result):
        return Comparison(turn=rival.turn)
    ratio, low, high = interval_of(timing.blocks)
    share, widened = timing.speedup / ratio, 1 + (timing.noise_floor or 0.0)
    return Comparison(
        turn=rival.turn, speedup=timing.speedup, speedup_low=low * share / widened, speedup_high=high * share * widened
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opponent:
    name: str
    open: Open


@dataclass(frozen=True, slots=True)
class CandidateTimer:
    """Times the candidate of a case: in its worker if that is kept, otherwise by replays or in new workers."""

    case: CaseContext

    @property
    def reference(self) -> Reference:
        return self.case.reference

    @property
    def workers(self) -> ModelWorkers:
        return self.case.tools.workers

    @property
    def plan(self) -> TimingPlan:
        return share_plan(self.case.tools.settings.timed_plan, self.case.task.run.timed_runs)

    def time(self, baseline: TimedBaseline) -> TimingResult:
        """Raises BaselineFailure."""
        case, opponent, reason = self.case, self._name_baseline(baseline), None
        if case.keeps_worker:
            with case.record.phase("timing"):
                return self._pair(opponent, self._find_floor(baseline), case.samples)
        if case.recorded is not None:
            try:
                with case.record.phase("timing"):
                    return self._replay(case.recorded, opponent, baseline)
            except NotReplayable as error:
                reason = error
        with case.set_worker_aside(), case.record.phase("timing"):
            result = self._time_apart(opponent)
            if case.replayed_kernels is not None:
                case.replayed_kernels = relate_to_calls(case.replayed_kernels, result.timing.candidate_us)
            return result if reason is None else label_bound(result, reason)

    def time_calls(self) -> CallTime:
        """Time whole calls on a GPU in the worker that was checked for correctness."""
        self.workers.ahead.finish()
        with pin_to_cores(self.reference.device.evaluator_cores):
            return time_calls(self.case.session, self.reference, self.case.seeds, checks=True)

    def call_untimed(self, seed: int) -> WrongCall | None:
        with self._open_candidate() as session:
            session.reset_state(self.reference.make_timed_state(seed))
            run = session.call(self.reference.make_timed_inputs(seed), self.reference.device)
            return find_wrong_call(self.reference, seed, run, random.Random(seed))

    def time_further(self, baseline: TimedBaseline) -> TimingResult:
        """Raises BaselineFailure."""
        opponent = self._name_baseline(baseline)
        if self.case.keeps_worker:
            return self._pair(opponent, self._known_floor)
        keep = self._record_baseline(opponent, baseline) if _has_room(self.reference) else None
        return self._add_call_times(self._compare_afresh(opponent, keep))

    def compare(self, rival: Candidate) -> TimingResult:
        opponent = _Opponent(name="rival", open=partial(self.workers.open_constructed_candidate, rival, self.reference))
        return self._pair(opponent, self._known_floor) if self.case.keeps_worker else self._compare_afresh(opponent)

    @property
    def _known_floor(self) -> float:
        timing = self.case.record.timing
        return (timing and timing.noise_floor) or 0.0

    def _find_floor(self, baseline: TimedBaseline) -> float:
        """Without stored floors, those of the device type are used."""
        noise = self.case.tools.noise
        if noise is None:
            return 0.0
        with self.case.session.paused():
            return noise.find(self._name_noise(baseline), lambda: self._pair_baseline(baseline))

    def _replay(
        self, recorded: Recording | NotReplayable, opponent: _Opponent, baseline: TimedBaseline
    ) -> TimingResult:
        """Time on a GPU. Raises NotReplayable."""
        self._end_worker(recorded)

        @contextmanager
        def take() -> Iterator[Recording]:
            """Raise only once the baseline is recorded, to whose device time whole calls are then compared."""
            if isinstance(recorded, NotReplayable):
                raise recorded
            yield recorded

        case = self.case
        custom = case.describe_custom_kernels() if case.tools.settings.attribute_work else None
        timer = self._make_replay_timer(measures_energy=case.tools.settings.energy, custom=custom)
        try:
            result = timer.measure(opponent.name, self._record_baseline(opponent, baseline), take)
        except NotReplayable:
            if not self.workers.ahead.forkserver.unrecordable:
                case.recorded_functions = recorded.functions
            raise
        finally:
            case.replayed_kernels = timer.kernels
        return self._add_call_times(result)

    def _end_worker(self, recorded: Recording | NotReplayable) -> None:
        """While the baseline is recorded and timed, no process of the candidate may run or hold memory for nothing."""
        if isinstance(recorded, Recording):
            recorded.end_worker()  # its memory is replayed
        else:
            self.case.worker.close()
            self.workers.ahead.finish()

    def _record_baseline(self, opponent: _Opponent, baseline: TimedBaseline) -> Keep:
        given = opponent.name, opponent.open, self.reference, self.case.seeds, self.workers.ahead
        return partial(keep_baseline, *given, may_read_back=not baseline.source)

    def _compare_afresh(self, opponent: _Opponent, keep: Keep | None = None) -> TimingResult:
        """Without `keep`, the opponent's recording is closed at the end."""
        if not self.reference.device.replays_calls:
            return self._time_apart(opponent)
        keep = keep or partial(record_rival, opponent.open, self.reference, self.case.seeds)
        record_candidate = partial(record_call, self._open_candidate, self.reference, self.case.seeds)
        try:
            return self._make_replay_timer().measure(opponent.name, keep, record_candidate)
        except NotReplayable as reason:
            return label_bound(self._time_apart(opponent), reason)

    def _make_replay_timer(self, *, measures_energy: bool = False, custom: CustomKernels | None = None) -> ReplayTimer:
        from harness.evaluation.timing.replay_timing import ReplayTimer  # a CPU needs none of it

        return ReplayTimer(
            reference=self.reference,
            plan=self.plan,
            seeds=self.case.seeds,
            ahead=self.workers.ahead,
            measures_energy=measures_energy,
            custom=custom,
            libraries=self.case.task.libraries,
        )

    def _open_candidate(self) -> AbstractContextManager[ModelSession]:
        return self.workers.open_constructed_candidate(self.case.task.candidate, self.reference)

    def _name_baseline(self, baseline: TimedBaseline) -> _Opponent:
        return _Opponent(name=baseline.name, open=partial(self.workers.open_baseline, self.reference, baseline))

    def _pair(self, opponent: _Opponent, floor: float, samples: CodeSamples | None = None) -> TimingResult:
        with opponent.open() as baseline:
            timer = self._make_pair(baseline, self.case.session, self.plan, samples)
            return timer.measure(opponent.name, self.case.seeds, floor)

    def _pair_baseline(self, baseline: TimedBaseline) -> Timing:
        """Noise floors are stored, so the plan is the same for every fidelity."""
        opponent = self._name_baseline(baseline)
        with opponent.open() as one, opponent.open() as other:
            timer = self._make_pair(one, other, shorten_plan(self.case.tools.settings.plan))
            return timer.measure(opponent.name, self.case.seeds).timing

    def _make_pair(
        self, baseline: ModelSession, candidate: ModelSession, plan: TimingPlan, samples: CodeSamples | None = None
    ) -> PairedTimer:
        return PairedTimer(
            baseline=baseline,
            candidate=candidate,
            reference=self.reference,
            plan=plan,
            seed=next(self.case.seeds),
            samples=samples,
        )

    def _time_apart(self, opponent: _Opponent) -> TimingResult:
        self.workers.ahead.finish()
        timer_type = ApartTimer if self.reference.device.replays_calls else ReportedApartTimer
        timer = timer_type(reference=self.reference, plan=self.plan, seed=next(self.case.seeds))
        return timer.measure(opponent.name, opponent.open, self._open_candidate, self.case.seeds)

    def _name_noise(self, baseline: TimedBaseline) -> NoiseKey:
        facts, problem = self.case.tools.environment, self.reference.loaded.problem
        return NoiseKey(
            problem_digest=problem.digest,
            workload=" ".join(
                filter(None, (self.reference.loaded.workload, self.case.task.run.name, problem.precision))
            ),
            baseline=baseline.name,
            device_type=self.reference.device.torch_device.type,
            machine=" ".join(facts.get(name, "") for name in ("cpu", "threads", "gpu", "torch", "harness")),
        )

    def _add_call_times(self, result: TimingResult) -> TimingResult:
        timing, kept = result.timing, self.reference.baselines.get(result.timing.baseline)
        if timing.clock != "device" or not isinstance(kept, KeptBaseline):
            return result
        times = replace(timing, baseline_call_us=kept.call_us, candidate_call_us=self.case.call_us)
        return replace(result, timing=times)


def _has_room(reference: Reference) -> bool:
    """Return whether one more baseline can be kept beside all that the plan holds."""
    kept_bytes = reference.need.count_worker_bytes(reference.footprint.kept_calls)
    free_bytes = reference.device.measure_room().device_bytes
    return reference.has_full_plan and kept_bytes + reference.plan.device_bytes < USABLE_SHARE * free_bytes
