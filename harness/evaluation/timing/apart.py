"""Timing where two workers do not fit on the device: baseline, candidate, baseline.

Drift of the baseline widens the interval. Only samples of outputs are kept; inputs are remade from seeds.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from harness.domain import Block, Conditions
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.timing.chosen_calls import ChosenCalls
from harness.evaluation.timing.clocks import TimingResult, call_suspect, confirm_reported_times, summarise_blocks
from harness.evaluation.timing.noise_floor import find_device_floor
from harness.evaluation.timing.paired import mark_disturbed_unreliable, pin_to_cores
from harness.evaluation.timing.plan import PATIENCE, TimingPlan
from harness.evaluation.timing.system_conditions import ConditionSampler
from harness.evaluation.timing.timed_calls import make_block, require_form
from harness.evaluation.timing.window_clock import Windows, confirm_windows
from harness.evaluation.timing.window_timing import await_idle, count_warmup_calls
from harness.sandbox.gpu.window import WindowSession
from harness.sandbox.model_session import ModelSession, Run

Open = Callable[[], AbstractContextManager[ModelSession]]


class ApartTimer:
    def __init__(self, *, reference: Reference, plan: TimingPlan, seed: int) -> None:
        self._reference = reference
        self._device = reference.device
        self._plan = plan
        self._chosen = ChosenCalls(reference, plan.choice, random.Random(seed))
        self._is_whole: bool | None = None  # the baseline's outputs cannot be read in places: all are copied whole

    def measure(self, name: str, open_baseline: Open, open_candidate: Open, seeds: Iterator[int]) -> TimingResult:
        sampler = ConditionSampler(self._device, load_matters=False)
        with pin_to_cores(self._device.evaluator_cores):
            before = self._time_alone(open_baseline, seeds, self._count_calls, sampler)
            half = len(before)
            mine = self._time_alone(open_candidate, seeds, lambda *_: 2 * half, sampler, note=self._chosen.note)
            after = self._time_alone(open_baseline, seeds, lambda *_: half, sampler)
            wrong = self._chosen.find_wrong()
        theirs = [run for pair in zip(before, after, strict=False) for run in pair]
        result = self._conclude(name, _pair(theirs, mine), _pair(before, after), sampler.conclude())
        if wrong is not None:
            return call_suspect(result.timing, "timed_call", wrong)
        return mark_disturbed_unreliable(result)

    def _conclude(
        self,
        name: str,
        blocks: tuple[Block, ...],
        equals: tuple[Block, ...],
        conditions: Conditions,
    ) -> TimingResult:
        """`equals`: baseline pairs from before and after."""
        first, second = (
            statistics.median(values)
            for values in zip(*((one.baseline_claim_us, one.candidate_claim_us) for one in equals), strict=True)
        )
        floor = max(find_device_floor(self._device.torch_device.type, first), abs(second / first - 1))
        if not self._device.is_cuda:
            return confirm_reported_times(replace(summarise_blocks(name, blocks, floor), conditions=conditions))
        result = confirm_windows(name, Windows(blocks=blocks, before=equals, after=equals), floor)
        return replace(result, timing=replace(result.timing, conditions=conditions))

    def _count_calls(self, usual_us: float, call_s: float) -> int:
        """Half the planned pairs, since the baseline is timed twice. `call_s`: of a call with all around it."""
        plan = self._plan
        is_slow = usual_us >= 1e6 or 2 * plan.min_blocks * call_s > PATIENCE * plan.budget_s
        least = plan.min_blocks_when_slow if is_slow else plan.min_blocks
        return max(-(-least // 2), min(int(plan.budget_s / (4 * call_s)), plan.max_blocks // 2))

    def _time_alone(
        self,
        open_worker: Open,
        seeds: Iterator[int],
        count_calls: Callable[[float, float], int],
        sampler: ConditionSampler,
        note: Callable[[int, Run], None] = lambda seed, run: None,
    ) -> list[Run]:
        if self._device.is_cuda:
            await_idle(self._device)  # work of the previous worker may still run
        with open_worker() as session:
            session.take_samples()
            count = count_calls(*self._warm_up(session, seeds))
            runs = []
            for seed, run in self._call_in_turn(session, seeds, count):
                note(seed, run)
                runs.append(replace(run, outputs=replace(run.outputs, tensors=())))
                sampler.sample()
        return runs

    def _warm_up(self, session: ModelSession, seeds: Iterator[int]) -> tuple[float, float]:
        """The shortest reported time, in us, and the shortest time of a call with all around it, in s."""
        times: list[float] = []
        spent_s: list[float] = []
        for _ in count_warmup_calls(session, self._plan.warmup_calls):
            began_s = time.monotonic()
            inputs = self._reference.make_timed_inputs(next(seeds))
            session.reset_state()
            times.append(self._call(session, inputs).called.claim_us)
            spent_s.append(time.monotonic() - began_s)
        if self._is_whole is None and isinstance(session, WindowSession):
            self._is_whole = not session.is_read_in_places
        session.collect_garbage()
        return min(times), min(spent_s)

    def _call_in_turn(self, session: ModelSession, seeds: Iterator[int], count: int) -> Iterator[tuple[int, Run]]:
        """(seed of the inputs, call), cold cache."""
        drawn = [next(seeds) for _ in range(count)]
        if self._device.is_cuda:
            for seed in drawn:
                session.reset_state(self._reference.make_timed_state(seed))
                yield seed, self._call(session, self._reference.make_timed_inputs(seed))
            return
        session.prepare_call(self._reference.make_timed_inputs(drawn[0]))
        for seed in drawn:
            yield seed, require_form(self._call_on_cpu(session, seed))
        session.disarm()

    def _call(self, session: ModelSession, inputs: Sequence[Any]) -> Run:
        """On a GPU its window ends with secret places of the outputs, if the baseline's allow it."""
        how = {"in_whole": bool(self._is_whole)} if isinstance(session, WindowSession) else {"look": False}
        return require_form(session.call(inputs, self._device, **how))

    def _call_on_cpu(self, session: ModelSession, seed: int) -> Run:
        state = self._reference.make_timed_state(seed)
        session.stage(self._reference.make_timed_inputs(seed), state)
        self._device.flush_cache()
        return session.complete(session.call_timed())


def _pair(theirs: Sequence[Run], mine: Sequence[Run]) -> tuple[Block, ...]:
    return tuple(map(make_block, theirs, mine))
