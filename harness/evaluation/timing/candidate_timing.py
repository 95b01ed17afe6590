"""Chooses the timer for the device and the memory plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from harness.domain import Candidate, TimedBaseline, Timing
from harness.evaluation.cases import CaseRun
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.integrity.attribution import CustomKernels
from harness.evaluation.model_workers import ModelWorkers
from harness.evaluation.results import TimingResult
from harness.evaluation.settings import EvaluationSettings, TimingPlan, share_plan, shorten_plan
from harness.evaluation.timing.apart import ApartTimer, CallTime, Open, ReportedApartTimer, time_calls
from harness.evaluation.timing.paired import PairedTimer, pin_to_cores
from harness.evaluation.timing.replay_statistics import label_bound
from harness.evaluation.timing.replay_timing import Keep, ReplayTimer, keep_baseline, record_call, record_rival
from harness.evaluation.timing.system_conditions import NoiseFloors, NoiseKey
from harness.sandbox.gpu.recording import KeptBaseline, NotReplayable, Recording
from harness.sandbox.memory_limits import USABLE_SHARE
from harness.sandbox.model_session import ModelSession


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opponent:
    name: str
    open: Open


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTimer:
    """Times one candidate in one case. With `noise` None, the device type's floors are used."""

    workers: ModelWorkers
    settings: EvaluationSettings
    noise: NoiseFloors | None
    environment: Mapping[str, str]
    run: CaseRun
    candidate: Candidate
    reference: Reference
    seeds: Iterator[int]

    @property
    def plan(self) -> TimingPlan:
        return share_plan(self.settings.timed_plan, self.run.timed_runs)

    def time_session(self, session: ModelSession, baseline: TimedBaseline) -> TimingResult:
        floor = 0.0
        if self.noise is not None:
            with session.paused():
                floor = self.noise.find(self._name_noise(baseline), lambda: self._pair_baseline(baseline))
        return self._pair(session, self._name_baseline(baseline), floor)

    def compare_session(self, session: ModelSession, rival: Candidate, timing: Timing) -> TimingResult:
        """Time on a CPU, beside a new worker with the rival. `timing` is that against the baseline."""
        return self._pair(session, self._name_rival(rival), timing.noise_floor or 0.0)

    def replay(
        self,
        recorded: Recording | NotReplayable,
        baseline: TimedBaseline,
        call_us: float | None,
        custom: CustomKernels | None,
    ) -> TimingResult | NotReplayable:
        """Time on a GPU. Ends the recording's worker. `call_us` is the candidate's whole call. The share of `custom`
        kernels is measured, too. Returns the reason if the work cannot be replayed.
        """
        if isinstance(recorded, Recording):
            recorded.end_worker()  # it must not disturb the baseline's calls

        @contextmanager
        def take() -> Iterator[Recording]:
            if isinstance(recorded, NotReplayable):
                raise recorded
            yield recorded

        opponent = self._name_baseline(baseline)
        timer = self._make_replay_timer(measures_energy=self.settings.energy, custom=custom)
        try:
            result = timer.measure(opponent.name, self._record_baseline(opponent, baseline), take)
        except NotReplayable as reason:
            return reason
        return _add_call_times(result, self.reference, call_us)

    def time_calls(self, session: ModelSession) -> CallTime:
        """Time whole calls on a GPU in the worker that was checked for correctness."""
        self.workers.ahead.finish()
        with pin_to_cores(self.reference.device.evaluator_cores):
            return time_calls(session, self.reference, self.seeds, checks=True)

    def time_in_fresh_workers(self, baseline: TimedBaseline, reason: NotReplayable | None = None) -> TimingResult:
        result = self._time_apart(self._name_baseline(baseline))
        return result if reason is None else label_bound(result, reason)

    def compare_in_fresh_workers(self, rival: Candidate) -> TimingResult:
        return self._compare_afresh(self._name_rival(rival), None)

    def time_further(
        self, session: ModelSession | None, baseline: TimedBaseline, *, floor: float, call_us: float | None
    ) -> TimingResult:
        """Without the candidate's `session`, in fresh workers. Raises BaselineFailure."""
        opponent = self._name_baseline(baseline)
        if session is not None:
            return self._pair(session, opponent, floor)
        keep = self._record_baseline(opponent, baseline) if _has_room(self.reference) else None
        return _add_call_times(self._compare_afresh(opponent, keep), self.reference, call_us)

    def _record_baseline(self, opponent: _Opponent, baseline: TimedBaseline) -> Keep:
        given = opponent.name, opponent.open, self.reference, self.seeds, self.workers.ahead
        return partial(keep_baseline, *given, may_read_back=not baseline.source)

    def _compare_afresh(self, opponent: _Opponent, keep: Keep | None) -> TimingResult:
        """Without `keep`, the opponent's recording is closed at the end."""
        if not self.reference.device.replays_calls:
            return self._time_apart(opponent)
        keep = keep or partial(record_rival, opponent.open, self.reference, self.seeds)
        record_candidate = partial(record_call, self._open_candidate, self.reference, self.seeds)
        try:
            return self._make_replay_timer().measure(opponent.name, keep, record_candidate)
        except NotReplayable as reason:
            return label_bound(self._time_apart(opponent), reason)

    def _make_replay_timer(self, *, measures_energy: bool = False, custom: CustomKernels | None = None) -> ReplayTimer:
        return ReplayTimer(
            reference=self.reference,
            plan=self.plan,
            seeds=self.seeds,
            ahead=self.workers.ahead,
            measures_energy=measures_energy,
            custom=custom,
        )

    def _open_candidate(self) -> AbstractContextManager[ModelSession]:
        return self.workers.open_constructed_candidate(self.candidate, self.reference)

    def _name_baseline(self, baseline: TimedBaseline) -> _Opponent:
        return _Opponent(name=baseline.name, open=partial(self.workers.open_baseline, self.reference, baseline))

    def _name_rival(self, rival: Candidate) -> _Opponent:
        return _Opponent(name="rival", open=partial(self.workers.open_constructed_candidate, rival, self.reference))

    def _pair(self, session: ModelSession, opponent: _Opponent, floor: float) -> TimingResult:
        with opponent.open() as baseline:
            return self._make_pair(baseline, session, self.plan).measure(opponent.name, self.seeds, floor)

    def _pair_baseline(self, baseline: TimedBaseline) -> Timing:
        """Noise floors are stored, so the plan is the same for every fidelity."""
        opponent = self._name_baseline(baseline)
        with opponent.open() as one, opponent.open() as other:
            timer = self._make_pair(one, other, shorten_plan(self.settings.plan))
            return timer.measure(opponent.name, self.seeds).timing

    def _make_pair(self, baseline: ModelSession, candidate: ModelSession, plan: TimingPlan) -> PairedTimer:
        return PairedTimer(
            baseline=baseline, candidate=candidate, reference=self.reference, plan=plan, seed=next(self.seeds)
        )

    def _time_apart(self, opponent: _Opponent) -> TimingResult:
        self.workers.ahead.finish()
        timer_type = ApartTimer if self.reference.device.replays_calls else ReportedApartTimer
        timer = timer_type(reference=self.reference, plan=self.plan, seed=next(self.seeds))
        return timer.measure(opponent.name, opponent.open, self._open_candidate, self.seeds)

    def _name_noise(self, baseline: TimedBaseline) -> NoiseKey:
        facts, problem = self.environment, self.reference.loaded.problem
        return NoiseKey(
            problem_digest=problem.digest,
            workload=" ".join(filter(None, (self.reference.loaded.workload, self.run.name, problem.precision))),
            baseline=baseline.name,
            device_type=self.reference.device.torch_device.type,
            machine=" ".join(facts.get(name, "") for name in ("cpu", "threads", "gpu", "torch", "harness")),
        )


def _add_call_times(result: TimingResult, reference: Reference, call_us: float | None) -> TimingResult:
    timing = result.timing
    kept = reference.baselines.get(timing.baseline)
    if timing.clock != "device" or not isinstance(kept, KeptBaseline):
        return result
    return replace(result, timing=replace(timing, baseline_call_us=kept.call_us, candidate_call_us=call_us))


def _has_room(reference: Reference) -> bool:
    """Return whether one more baseline can be kept beside all that the plan holds."""
    kept_bytes = reference.need.count_worker_bytes(reference.footprint.kept_calls)
    free_bytes = reference.device.measure_room().device_bytes
    return reference.has_full_plan and kept_bytes + reference.plan.device_bytes < USABLE_SHARE * free_bytes
