"""Times pairs on a CPU: interleaved A/B pairs in two workers, with fresh inputs and a cold cache.

The evaluator's clock confirms reported times (`block_statistics`), outputs of random calls are verified, and disturbed
measurements are repeated.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from harness.domain import Block, Conditions, Finding
from harness.evaluation.correctness.calls import REUSES_OUTPUT, describe_change, find_worst_allowed
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.integrity.code_samples import CodeSamples
from harness.evaluation.results import TimingResult, WrongCall
from harness.evaluation.settings import PATIENCE, TimingPlan
from harness.evaluation.timing.block_statistics import (
    DISTURBED_SHARE,
    choose_half_width,
    compare_clocks,
    confirm_reported_times,
    depends_on_clocks,
    interval_of,
    is_certain_tie,
    is_hopeless,
    is_surely_slower,
    median_reported_us,
    refuse_wrong_call,
    summarise_blocks,
)
from harness.evaluation.timing.chosen_calls import ChosenCalls, deal_changed_steps, draw_seed, make_block
from harness.evaluation.timing.system_conditions import ConditionSampler, find_device_floor
from harness.sandbox.memory_probe import MemorySample
from harness.sandbox.model_session import ModelSession
from harness.tensors.outputs import Change

ASK_EVERY = 10  # blocks: the test resamples, which takes time
HELD_UP = 10.0  # times slower by the evaluator's clock, whatever is reported
DEALT_BLOCKS = 20  # actions are distributed over as many blocks at a time
DEALT_COMPARED = 4  # beside these: blocks of which only outputs count
TAKEN = (14, 5)  # of these: blocks whose outputs are read, in the first `min_blocks` and after them
LOOKED_SHARE = 0.3  # of those: both workers' memory is sampled right after the call
KEPT_SHARE = 0.25  # of those: the outputs must not change until the last call
SURE_BLOCKS = 3  # enough of a candidate whose long calls are surely slower in each
SHORT_BELOW_US = 20_000.0  # the outputs of all longer calls are read, since that costs little in comparison


@dataclass(frozen=True, slots=True)
class _Given:
    seed: int
    inputs: tuple[Any, ...]
    state: dict[str, Tensor] | None


class PairedTimer:
    def __init__(
        self,
        *,
        baseline: ModelSession,
        candidate: ModelSession,
        reference: Reference,
        plan: TimingPlan,
        seed: int,
        samples: CodeSamples | None = None,
    ) -> None:
        self._baseline = baseline
        self._candidate = candidate
        self._reference = reference
        self._plan = plan
        self._random = random.Random(seed)
        self._chosen = ChosenCalls(reference, plan.choice, self._random)
        self._sights: list[str] = []
        self._change = Change.NONE  # of earlier outputs, the worst
        self._spent_s: dict[int, float] = {}  # by session id, in this measurement
        self._noise_floor = 0.0
        self._ahead: _Given | None = None  # of the next block
        self._steps = _deal_steps(reference, self._random)
        self._samples = samples
        self._sampling_s = 0.0  # in this measurement

    def measure(self, name: str, seeds: Iterator[int], problem_floor: float = 0.0) -> TimingResult:
        # Once is enough for a candidate that is surely slower, since it was called before.
        times: list[float] = []
        candidate_us = 0.0
        for _ in range(self._plan.warmup_calls):
            inputs = self._reference.make_timed_inputs(next(seeds))
            times.append(self._call(self._baseline, inputs))
            if not is_surely_slower(min(times), candidate_us):
                candidate_us = self._call(self._candidate, inputs)
        for session in (self._baseline, self._candidate):
            session.collect_garbage()
        baseline_us = min(times)
        self._noise_floor = max(problem_floor, find_device_floor("cpu", baseline_us))
        attempts = 1
        blocks, conditions = self._measure_once(seeds, baseline_us)
        while conditions.disturbed and attempts < self._plan.attempts:
            blocks, conditions = self._measure_once(seeds, baseline_us)
            attempts += 1
        timing = replace(summarise_blocks(name, blocks, self._noise_floor), conditions=conditions, attempts=attempts)
        wrong = self._find_wrong_call()
        if wrong is not None:
            return refuse_wrong_call(timing, wrong)
        result = mark_disturbed_unreliable(confirm_reported_times(timing))
        notes = (REUSES_OUTPUT,) if self._change is Change.REUSED else ()
        return replace(result, findings=(*result.findings, *notes))

    def _measure_once(self, seeds: Iterator[int], baseline_us: float) -> tuple[list[Block], Conditions]:
        blocks: list[Block] = []
        inputs = self._reference.make_timed_inputs(next(seeds))
        for session in (self._baseline, self._candidate):
            session.prepare_call(inputs)
            self._spent_s[id(session)] = 0.0
        sampler = ConditionSampler(self._reference.device, self._count_used_s, load_matters=not self._plan.allow_load)
        taken = self._deal_takes()
        is_short = baseline_us < SHORT_BELOW_US
        began_s, self._sampling_s = time.monotonic(), 0.0
        with pin_to_cores(self._reference.device.evaluator_cores):
            while not self._is_enough(blocks, time.monotonic() - began_s - self._sampling_s, baseline_us):
                is_long = not is_short or (bool(blocks) and _are_surely_slower(blocks))
                block = self._measure_block(seeds, take=next(taken) or is_long)
                blocks += [] if block is None else [block]
                self._sample_calls(seeds)
                sampler.sample()
        conditions = sampler.conclude()
        for session in (self._baseline, self._candidate):
            session.disarm()
        return blocks, conditions

    def _count_used_s(self) -> float:
        workers_s = self._baseline.used_s + self._candidate.used_s
        return workers_s + self._candidate.server_used_s() + time.process_time()

    def _call(self, session: ModelSession, inputs: tuple[Any, ...]) -> float:
        """Return the reported time in us."""
        session.reset_state()
        return session.call(inputs, self._reference.device, look=False).called.reported_us

    def _is_enough(self, blocks: list[Block], spent_s: float, baseline_us: float) -> bool:
        if len(blocks) >= SURE_BLOCKS and _are_surely_slower(blocks):
            return True
        floor = self._plan.min_blocks if baseline_us < 1e6 else self._plan.min_blocks_when_slow
        if len(blocks) < floor:
            may_end = len(blocks) >= self._plan.min_blocks_when_slow and spent_s > self._plan.budget_s
            return may_end and (is_hopeless(blocks) or self._is_held_up())
        if len(blocks) >= self._plan.max_blocks or spent_s > self._plan.budget_s:
            return True
        if (len(blocks) - floor) % ASK_EVERY:
            return False
        ratio, low, high = interval_of(blocks, roughly=True)
        half_width = choose_half_width(ratio, self._plan.wanted_half_width)
        if (high - low) / 2 >= half_width * ratio and not is_certain_tie(low, high, self._noise_floor):
            return False
        reported_us, gaps = median_reported_us(blocks), compare_clocks(blocks)
        is_resolved = gaps.resolution_us <= DISTURBED_SHARE * reported_us
        return is_resolved and not depends_on_clocks(low / (1 + self._noise_floor), reported_us, gaps)

    def _make_given(self, seeds: Iterator[int]) -> _Given:
        seed = draw_seed(self._reference, seeds, next(self._steps))
        state = self._reference.make_timed_state(seed)
        return _Given(seed, self._reference.make_timed_inputs(seed), state)

    def _is_held_up(self) -> bool:
        """The candidate takes far longer by the evaluator's clock, whatever it reports."""
        baseline_s, candidate_s = (self._spent_s[id(session)] for session in (self._baseline, self._candidate))
        return candidate_s > HELD_UP * baseline_s or baseline_s > PATIENCE * self._plan.budget_s

    def _deal_takes(self) -> Iterator[bool]:
        """Take a fixed number of blocks in twenty, in secret order, so that no clock goes unread by chance."""
        for first in itertools.count(0, DEALT_BLOCKS):
            count = TAKEN[first >= self._plan.min_blocks]
            yield from self._random.sample([True] * count + [False] * (DEALT_BLOCKS - count), DEALT_BLOCKS)

    def _measure_block(self, seeds: Iterator[int], *, take: bool) -> Block | None:
        """Make one call of each on the same inputs and state, in random order, each with a cold cache. None if only the
        outputs count.
        """
        given = self._ahead or self._make_given(seeds)
        take |= self._chosen.is_changed(given.seed)
        look = take and self._random.random() < LOOKED_SHARE
        keep = take and self._random.random() < KEPT_SHARE
        order = [self._baseline, self._candidate]
        self._random.shuffle(order)
        for session in order:
            with self._charging(session):
                session.stage(given.inputs, given.state, look=look)
        runs = []
        for session, is_second in zip(order, (False, True), strict=True):
            self._reference.device.flush_cache(once=is_second)
            with self._charging(session):
                runs.append(session.call_timed(take=take, keep=keep))
        baseline, candidate = runs if order[0] is self._baseline else reversed(runs)
        # The second one is stopped now.
        self._ahead = self._make_given(seeds)
        if candidate.taken:
            self._chosen.note(given.seed, candidate, baseline)
        baseline, candidate = self._baseline.complete(baseline), self._candidate.complete(candidate)
        self._note_samples(baseline.memory_sample, candidate.memory_sample)
        if self._samples is not None:
            self._samples.note_call(candidate.evaluator_us)
        is_only_compared = self._reference.choose_timed_step(given.seed) in self._reference.compared_steps
        return None if is_only_compared else make_block(baseline, candidate)

    @contextmanager
    def _charging(self, session: ModelSession) -> Iterator[None]:
        """Stop the other side: its spinning threads would slow this one."""
        began_s = time.monotonic()
        yield
        self._spent_s[id(session)] += time.monotonic() - began_s

    def _sample_calls(self, seeds: Iterator[int]) -> None:
        """Make calls whose time does not count, and which the candidate cannot tell from others before they end. Each
        is followed by one of the baseline, whose next timed call would be slower after a rest.
        """
        began_s = time.monotonic()
        while self._samples is not None and self._samples.draws_call():
            seed = next(seeds)
            inputs, state = self._reference.make_timed_inputs(seed), self._reference.make_timed_state(seed)
            for session in (self._candidate, self._baseline):
                session.stage(inputs, state)
                self._reference.device.flush_cache()
                if session is self._candidate:
                    self._samples.call(session)
                else:
                    session.call_timed(take=True)
                session.await_rest()
        self._sampling_s += time.monotonic() - began_s

    def _note_samples(self, baseline: MemorySample | None, candidate: MemorySample | None) -> None:
        """Ignore calls if the baseline's outputs move, or may move."""
        if candidate is None or baseline is None:
            return
        if candidate.missing and not baseline.missing:
            self._sights.append(f"its outputs were not at the reported addresses ({candidate.missing})")
        elif candidate.change > baseline.change and not self._reference.views:
            self._change = max(self._change, candidate.change)

    def _find_wrong_call(self) -> WrongCall | None:
        if self._sights:
            return WrongCall(f"when the worker reported the end of a timed call, {self._sights[0]}")
        self._change = max(self._change, self._candidate.find_pinned_change())
        if self._change > find_worst_allowed(self._reference.loaded.problem):
            return WrongCall(describe_change(self._change, "during timed calls"))
        return self._chosen.find_wrong()


def _are_surely_slower(blocks: list[Block]) -> bool:
    return all(is_surely_slower(block.baseline_reported_us, block.candidate_reported_us) for block in blocks)


def _deal_steps(reference: Reference, source: random.Random) -> Iterator[str]:
    """Yield the kind of inputs of each block: a quarter of those whose time counts is changed. Among them are a few of
    the other kinds that the problem declares, which timed calls must handle, too.
    """
    changed = deal_changed_steps(reference, source)
    compared = itertools.cycle(source.sample(reference.compared_steps, len(reference.compared_steps)))
    beside = DEALT_COMPARED if reference.compared_steps else 0
    while True:
        places = source.sample(range(DEALT_BLOCKS), DEALT_BLOCKS // 4)
        followed = source.sample(range(DEALT_BLOCKS), beside)
        for place in range(DEALT_BLOCKS):
            yield next(changed) if place in places else "as_given"
            if place in followed:
                yield next(compared)


@contextmanager
def pin_to_cores(cores: set[int]) -> Iterator[None]:
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


def mark_disturbed_unreliable(result: TimingResult) -> TimingResult:
    conditions = result.timing.conditions
    if result.outcome is not None or conditions is None or not conditions.disturbed:
        return result
    message = f"{conditions.disturbed}, in each of {result.timing.attempts} measurements"
    finding = Finding(check="conditions", severity="warning", message=message)
    timing = replace(result.timing, verdict="unreliable")
    return replace(result, timing=timing, findings=(*result.findings, finding))
