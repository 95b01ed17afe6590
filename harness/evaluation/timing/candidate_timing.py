"""Chooses the timer for the device and the memory plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

from harness.domain import Candidate, TimedBaseline, Timing
from harness.evaluation.cases import CaseRun
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.model_workers import ModelWorkers
from harness.evaluation.settings import EvaluationSettings
from harness.evaluation.timing.apart import ApartTimer, Open, ReportedApartTimer
from harness.evaluation.timing.call_time import CallTime, time_calls
from harness.evaluation.timing.clocks import TimingResult
from harness.evaluation.timing.noise_floor import NoiseFloors, NoiseKey
from harness.evaluation.timing.paired import PairedTimer, pin_to_cores
from harness.evaluation.timing.plan import share_plan, shorten_plan
from harness.evaluation.timing.replay_statistics import label_bound
from harness.evaluation.timing.replay_timing import Keep, ReplayTimer, keep_baseline, record_call, record_rival
from harness.sandbox.gpu.recording import NotReplayable, Recording
from harness.sandbox.gpu.replayer import KeptBaseline
from harness.sandbox.memory_plan import USABLE_SHARE
from harness.sandbox.model_session import ModelSession


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opponent:
    name: str
    open: Open


class CandidateTimer:
    """With `noise` None, the device type's floors are used."""

    def __init__(
        self,
        workers: ModelWorkers,
        settings: EvaluationSettings,
        noise: NoiseFloors | None,
        environment: Mapping[str, str],
    ) -> None:
        self._workers = workers
        self._plan = settings.timed_plan
        self._equal_plan = shorten_plan(settings.plan)  # the same for every fidelity, since noise floors are stored
        self._measures_energy = settings.energy
        self._noise = noise
        self._environment = environment
        self._case = ""

    def for_run(self, run: CaseRun) -> CandidateTimer:
        timer = copy(self)
        timer._plan, timer._case = share_plan(self._plan, run.timed_runs), run.name
        return timer

    def time_session(
        self, session: ModelSession, reference: Reference, baseline: TimedBaseline, seeds: Iterator[int]
    ) -> TimingResult:
        floor = 0.0
        if self._noise is not None:
            with session.paused():
                floor = self._noise.find(
                    self._name_noise(reference, baseline), lambda: self._pair_baseline(reference, baseline, seeds)
                )
        return self._pair(session, reference, self._name_baseline(reference, baseline), floor, seeds)

    def compare_session(
        self, session: ModelSession, reference: Reference, rival: Candidate, timing: Timing, seeds: Iterator[int]
    ) -> TimingResult:
        """Time on a CPU, beside a new worker with the rival. `timing` is that against the baseline."""
        return self._pair(session, reference, self._name_rival(reference, rival), timing.noise_floor or 0.0, seeds)

    def replay(
        self,
        candidate: Recording | NotReplayable,
        reference: Reference,
        baseline: TimedBaseline,
        seeds: Iterator[int],
        call_us: float | None,
    ) -> TimingResult | NotReplayable:
        """Time on a GPU. Ends the recording's worker. `call_us` is the candidate's whole call. Returns the reason if
        the work cannot be replayed.
        """
        if isinstance(candidate, Recording):
            candidate.end_worker()  # it must not disturb the baseline's calls

        @contextmanager
        def take() -> Iterator[Recording]:
            if isinstance(candidate, NotReplayable):
                raise candidate
            yield candidate

        opponent = self._name_baseline(reference, baseline)
        timer = ReplayTimer(
            reference=reference,
            plan=self._plan,
            seeds=seeds,
            ahead=self._workers.ahead,
            measures_energy=self._measures_energy,
        )
        try:
            result = timer.measure(opponent.name, self._record_baseline(opponent, reference, baseline, seeds), take)
        except NotReplayable as reason:
            return reason
        return _add_call_times(result, reference, call_us)

    def time_calls(self, session: ModelSession, reference: Reference, seeds: Iterator[int]) -> CallTime:
        """Time whole calls on a GPU in the worker that was checked for correctness."""
        self._workers.ahead.finish()
        with pin_to_cores(reference.device.evaluator_cores):
            return time_calls(session, reference, seeds, checks=True)

    def time_in_fresh_workers(
        self,
        candidate: Candidate,
        reference: Reference,
        baseline: TimedBaseline,
        seeds: Iterator[int],
        reason: NotReplayable | None = None,
    ) -> TimingResult:
        opponent = self._name_baseline(reference, baseline)
        result = self._time_calls(candidate, reference, opponent, seeds)
        return result if reason is None else label_bound(result, reason)

    def compare_in_fresh_workers(
        self, candidate: Candidate, reference: Reference, rival: Candidate, seeds: Iterator[int]
    ) -> TimingResult:
        opponent = self._name_rival(reference, rival)
        return self._compare_afresh(candidate, reference, opponent, None, seeds)

    def time_further(
        self,
        session: ModelSession | None,
        candidate: Candidate,
        reference: Reference,
        baseline: TimedBaseline,
        seeds: Iterator[int],
        *,
        floor: float,
        call_us: float | None,
    ) -> TimingResult:
        """Without the candidate's `session`, in fresh workers. Raises BaselineFailure."""
        opponent = self._name_baseline(reference, baseline)
        if session is not None:
            return self._pair(session, reference, opponent, floor, seeds)
        keep = self._record_baseline(opponent, reference, baseline, seeds) if _has_room(reference) else None
        result = self._compare_afresh(candidate, reference, opponent, keep, seeds)
        return _add_call_times(result, reference, call_us)

    def _record_baseline(
        self, opponent: _Opponent, reference: Reference, baseline: TimedBaseline, seeds: Iterator[int]
    ) -> Keep:
        ahead, may_read_back = self._workers.ahead, not baseline.source
        return partial(
            keep_baseline, opponent.name, opponent.open, reference, seeds, ahead, may_read_back=may_read_back
        )

    def _compare_afresh(
        self,
        candidate: Candidate,
        reference: Reference,
        opponent: _Opponent,
        keep: Keep | None,
        seeds: Iterator[int],
    ) -> TimingResult:
        """Without `keep`, the opponent's recording is closed at the end."""
        open_candidate = partial(self._workers.open_constructed_candidate, candidate, reference)
        if reference.device.replays_calls:
            timer = ReplayTimer(reference=reference, plan=self._plan, seeds=seeds, ahead=self._workers.ahead)
            keep = keep or partial(record_rival, opponent.open, reference, seeds)
            record_candidate = partial(record_call, open_candidate, reference, seeds)
            try:
                return timer.measure(opponent.name, keep, record_candidate)
            except NotReplayable as reason:
                return label_bound(self._time_calls(candidate, reference, opponent, seeds), reason)
        return self._time_calls(candidate, reference, opponent, seeds)

    def _name_baseline(self, reference: Reference, baseline: TimedBaseline) -> _Opponent:
        return _Opponent(name=baseline.name, open=partial(self._workers.open_baseline, reference, baseline))

    def _name_rival(self, reference: Reference, rival: Candidate) -> _Opponent:
        return _Opponent(name="rival", open=partial(self._workers.open_constructed_candidate, rival, reference))

    def _pair(
        self, session: ModelSession, reference: Reference, opponent: _Opponent, floor: float, seeds: Iterator[int]
    ) -> TimingResult:
        with opponent.open() as baseline:
            timer = PairedTimer(
                baseline=baseline, candidate=session, reference=reference, plan=self._plan, seed=next(seeds)
            )
            return timer.measure(opponent.name, seeds, floor)

    def _time_calls(
        self, candidate: Candidate, reference: Reference, opponent: _Opponent, seeds: Iterator[int]
    ) -> TimingResult:
        self._workers.ahead.finish()
        open_candidate = partial(self._workers.open_constructed_candidate, candidate, reference)
        timer_type = ApartTimer if reference.device.replays_calls else ReportedApartTimer
        timer = timer_type(reference=reference, plan=self._plan, seed=next(seeds))
        return timer.measure(opponent.name, opponent.open, open_candidate, seeds)

    def _pair_baseline(self, reference: Reference, baseline: TimedBaseline, seeds: Iterator[int]) -> Timing:
        plan, open_baseline = self._equal_plan, self._workers.open_baseline
        with open_baseline(reference, baseline) as one, open_baseline(reference, baseline) as other:
            timer = PairedTimer(baseline=one, candidate=other, reference=reference, plan=plan, seed=next(seeds))
            return timer.measure(baseline.name, seeds).timing

    def _name_noise(self, reference: Reference, baseline: TimedBaseline) -> NoiseKey:
        facts, problem = self._environment, reference.loaded.problem
        return NoiseKey(
            problem_digest=problem.digest,
            workload=" ".join(filter(None, (reference.loaded.workload, self._case, problem.precision))),
            baseline=baseline.name,
            device_type=reference.device.torch_device.type,
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
