"""Chooses the timer for the device and the memory plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from copy import copy
from functools import partial

from harness.domain import Candidate, Timing
from harness.evaluation.cases import CaseRun
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.model_workers import ModelWorkers
from harness.evaluation.settings import EvaluationSettings
from harness.evaluation.timing.apart import ApartTimer
from harness.evaluation.timing.clocks import TimingResult
from harness.evaluation.timing.noise_floor import NoiseFloors, NoiseKey
from harness.evaluation.timing.paired import PairedTimer
from harness.evaluation.timing.plan import share_plan, shorten_plan
from harness.evaluation.timing.window_timing import WindowTimer
from harness.sandbox.model_session import ModelSession


class CandidateTimer:
    """`noise` None: floors of the device type."""

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
        self._noise = noise
        self._environment = environment
        self._case = ""

    def for_run(self, run: CaseRun) -> CandidateTimer:
        """The timer of one case, which has a share of the time and a noise floor of its own."""
        timer = copy(self)
        timer._plan, timer._case = share_plan(self._plan, run.timed_runs), run.name
        return timer

    def time_session(
        self, session: ModelSession, reference: Reference, baseline: str, seeds: Iterator[int]
    ) -> TimingResult:
        """On a CPU, beside a new worker with the baseline."""
        floor = 0.0
        if self._noise is not None:
            with session.paused():
                floor = self._noise.find(
                    self._name_noise(reference, baseline), lambda: self._pair_baseline(reference, baseline, seeds)
                )
        with self._workers.open_baseline(reference, baseline) as opponent:
            timer = PairedTimer(
                baseline=opponent, candidate=session, reference=reference, plan=self._plan, seed=next(seeds)
            )
            return timer.measure(baseline, seeds, floor)

    def time_in_fresh_workers(
        self, candidate: Candidate, reference: Reference, baseline: str, seeds: Iterator[int]
    ) -> TimingResult:
        """On a GPU, and where two workers do not fit."""

        def open_baseline() -> AbstractContextManager[ModelSession]:
            return self._workers.open_baseline(reference, baseline)

        def open_candidate() -> AbstractContextManager[ModelSession]:
            return self._workers.open_constructed_candidate(candidate, reference)

        if not reference.plan.baseline_beside:
            apart = ApartTimer(reference=reference, plan=self._plan, seed=next(seeds))
            return apart.measure(baseline, open_baseline, open_candidate, seeds)
        timer = WindowTimer(reference=reference, plan=self._plan, seed=next(seeds))
        if self._noise is None:
            return timer.measure(baseline, open_baseline, open_candidate, seeds)
        find_floor = partial(self._noise.widen, self._name_noise(reference, baseline))
        return timer.measure(baseline, open_baseline, open_candidate, seeds, find_floor)

    def _pair_baseline(self, reference: Reference, baseline: str, seeds: Iterator[int]) -> Timing:
        """A/A."""
        plan, open_baseline = self._equal_plan, self._workers.open_baseline
        with open_baseline(reference, baseline) as one, open_baseline(reference, baseline) as other:
            timer = PairedTimer(baseline=one, candidate=other, reference=reference, plan=plan, seed=next(seeds))
            return timer.measure(baseline, seeds).timing

    def _name_noise(self, reference: Reference, baseline: str) -> NoiseKey:
        facts, problem = self._environment, reference.loaded.problem
        return NoiseKey(
            problem_digest=problem.digest,
            workload=" ".join(filter(None, (reference.loaded.workload, self._case, problem.precision))),
            baseline=baseline,
            device_type=reference.device.torch_device.type,
            machine=" ".join(facts.get(name, "") for name in ("cpu", "threads", "gpu", "torch", "harness")),
        )
