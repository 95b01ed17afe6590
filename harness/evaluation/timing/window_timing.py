"""Paired timing on a GPU: interleaved windows of baseline and candidate, same fresh inputs, cold cache.

A/A pairs before and after the candidate's worker show whether it slowed the baseline; then the faster time counts.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.domain import Block, Conditions, HarnessError, Timing
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.timing.chosen_calls import ChosenCalls
from harness.evaluation.timing.clocks import HOPELESS, TimingResult, call_suspect, is_hopeless, summarise_blocks
from harness.evaluation.timing.noise_floor import find_device_floor
from harness.evaluation.timing.paired import mark_disturbed_unreliable, pin_to_cores
from harness.evaluation.timing.plan import PATIENCE, TimingPlan
from harness.evaluation.timing.slower_inputs import (
    GIVEN,
    SlowerInputs,
    charge_slowest,
    compare_inputs,
    list_slower_steps,
)
from harness.evaluation.timing.system_conditions import ConditionSampler
from harness.evaluation.timing.timed_calls import deal_changed_steps, draw_seed, make_block, require_form
from harness.evaluation.timing.window_clock import (
    Windows,
    confirm_windows,
    is_certainly_faster,
    is_precise_enough,
    is_worth_repeating,
)
from harness.sandbox.devices import Device
from harness.sandbox.gpu.window import WindowSession
from harness.sandbox.model_session import ModelSession, Run

LEAST_EQUAL_PAIRS, EQUAL_S = 5, 0.8  # A/A pairs, before and after the candidate; at most `TimingPlan.min_blocks`
MAX_PAIRS, ASK_EVERY = 200, 10
HOPELESS_PAIRS, FEWEST_PAIRS, SLOW_S = 5, 3, 2.0  # enough if the candidate is far slower in each; fewer take too long
STEADY_CALLS = 4  # in a row with outputs in known memory, before anything is measured; 1 where calls are slow
MAX_WARMUP_CALLS, MAX_QUICK_CALLS, LEAST_SLOW_CALLS, QUICK_S = 12, 40, 2, 1.0  # quick: all within a second
MOST_MEASUREMENTS = 2  # the last one counts, see `is_worth_repeating`
# Of so many pairs these only check whole outputs, see `WindowSession.call`, and of these so many have changed inputs.
DEALT_PAIRS, WHOLE_PAIRS, CHANGED_PAIRS = 20, 6, 4
KEPT_SHARE = 0.2  # of pairs: the outputs must not change until the last call
MAX_PINS = 6
FEWEST_OF_A_KIND = 2  # pairs with each kind of changed inputs, for a candidate that is faster; 1 where calls are slow
CONFIRMING_PAIRS = 9  # with inputs of a kind that seem to slow the candidate down, and as many with given ones
SETTLE_S = 10.0  # for an ended worker to leave the device
OVERWRITTEN = "an output of an earlier call changed before the last timed call ended"

Open = Callable[[], AbstractContextManager[ModelSession]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """Pairs of baseline and candidate."""

    pairs: tuple[Block, ...]
    conditions: Conditions
    attempts: int
    has_lost_pinned: bool
    slower: tuple[SlowerInputs, ...]


class WindowTimer:
    """For one measurement."""

    def __init__(self, *, reference: Reference, plan: TimingPlan, seed: int) -> None:
        self._reference = reference
        self._device = reference.device
        self._plan = plan
        self._random = random.Random(seed)
        self._chosen = ChosenCalls(reference, replace(plan.choice, screened_share=1.0), self._random)
        self._pins = 0
        self._by_step: dict[str, list[Block]] = {}  # pairs with the candidate, by the kind of their inputs
        self._is_whole = False  # one side's outputs cannot be read in places: those of both are copied whole
        self._second = ExitStack()  # with the A/A worker
        self._other: WindowSession
        self._equal: list[Timing] = []  # A/A

    def measure(
        self,
        name: str,
        open_baseline: Open,
        open_candidate: Open,
        seeds: Iterator[int],
        find_floor: Callable[[Sequence[Timing]], float] = lambda equals: 0.0,
    ) -> TimingResult:
        """`find_floor`: the problem's noise floor, given its A/A pairs of this measurement."""
        with pin_to_cores(self._device.evaluator_cores), ExitStack() as first, self._second:
            opened = self._open_together((first, open_baseline), (self._second, open_baseline))
            baseline, self._other = map(self._prepare, opened)
            baseline_us = self._warm_up(baseline, seeds)
            self._warm_up(self._other, seeds)
            self._is_whole = not baseline.is_read_in_places
            after = self._measure_equals(name, baseline, seeds)
            has_lost_pinned = False
            for _ in range(MOST_MEASUREMENTS):
                before = after
                with self._without_other(open_baseline, seeds):
                    beside = self._measure_beside(baseline, open_candidate, seeds, baseline_us)
                has_lost_pinned |= beside.has_lost_pinned
                after = self._measure_equals(name, baseline, seeds, briefly=is_hopeless(beside.pairs))
                windows = Windows(blocks=beside.pairs, before=before, after=after)
                if not is_worth_repeating(name, windows, find_device_floor("cuda", baseline_us)):
                    break
        await_idle(self._device)
        wrong = OVERWRITTEN if has_lost_pinned else self._chosen.find_wrong()
        floor = max(find_floor(self._equal), find_device_floor("cuda", baseline_us))
        result = charge_slowest(confirm_windows(name, windows, floor), beside.slower)
        timing = replace(result.timing, conditions=beside.conditions, attempts=beside.attempts)
        if wrong is not None:
            return call_suspect(timing, "timed_call", wrong)
        return mark_disturbed_unreliable(replace(result, timing=timing))

    @contextmanager
    def _without_other(self, open_baseline: Open, seeds: Iterator[int]) -> Iterator[None]:
        """The second baseline's worker is paused, or closed where memory is short."""
        if self._reference.plan.pair_kept:
            self._other.pause()
        else:
            self._second.close()
        await_idle(self._device)
        yield
        await_idle(self._device)
        if self._reference.plan.pair_kept:
            self._other.resume()
        else:
            self._other = self._prepare(self._second.enter_context(open_baseline()))
            self._warm_up(self._other, seeds)

    def _measure_beside(
        self, baseline: WindowSession, open_candidate: Open, seeds: Iterator[int], baseline_us: float
    ) -> _Beside:
        with open_candidate() as opened:
            candidate = self._prepare(opened)
            self._warm_up(candidate, seeds, baseline_us)
            self._is_whole |= not candidate.is_read_in_places
            self._pins = 0
            self._by_step.clear()
            for attempt in range(1, self._plan.attempts + 1):  # noqa: B007 - the last one counts
                pairs, conditions = self._measure_pairs(baseline, candidate, seeds, baseline_us)
                if not conditions.disturbed:
                    break
            slower: tuple[SlowerInputs, ...] = ()
            if is_certainly_faster(pairs, find_device_floor("cuda", baseline_us)):
                slower = tuple(self._find_slower_inputs(baseline, candidate, seeds))
            return _Beside(
                pairs=tuple(pairs),
                conditions=conditions,
                attempts=attempt,
                has_lost_pinned=candidate.has_lost_pinned(),
                slower=slower,
            )

    def _find_slower_inputs(
        self, baseline: WindowSession, candidate: WindowSession, seeds: Iterator[int]
    ) -> Iterator[SlowerInputs]:
        """Measures pairs of their own for each kind of inputs that seems to slow the candidate down, in as much time as
        the measurement had. Kinds that no or one call happened to have come first."""
        began_s = time.monotonic()
        for least, step in itertools.product(range(1, FEWEST_OF_A_KIND + 1), self._reference.changed_steps):
            is_due = least == 1 or time.monotonic() - began_s < self._plan.budget_s
            if is_due and len(self._by_step.get(step, ())) < least:
                self._measure_candidate(baseline, candidate, draw_seed(self._reference, seeds, step), in_whole=True)
        for step in list_slower_steps(self._by_step):
            fresh: dict[str, list[Block]] = {step: [], GIVEN: []}
            for _ in range(CONFIRMING_PAIRS):
                if time.monotonic() - began_s > self._plan.budget_s:
                    break
                for one in self._random.sample(tuple(fresh), 2):
                    seed = draw_seed(self._reference, seeds, one)
                    fresh[one].append(self._measure_candidate(baseline, candidate, seed))
            found = compare_inputs(step, fresh[step], fresh[GIVEN])
            if found is not None:
                yield found

    def _open_together(self, *openings: tuple[ExitStack, Open]) -> list[ModelSession]:
        """Starts workers at the same time, each closed by its stack."""

        def enter(stack: ExitStack, start: Open) -> ModelSession:
            if self._device.is_cuda:
                torch.cuda.set_device(self._device.torch_device)  # of this thread
            return stack.enter_context(start())

        with ThreadPoolExecutor(len(openings)) as pool:
            entering = [pool.submit(enter, *opening) for opening in openings]
        return [one.result() for one in entering]

    def _prepare(self, session: ModelSession) -> WindowSession:
        if not isinstance(session, WindowSession):
            raise HarnessError("window timing needs a GPU session")
        if not self._reference.plan.timed_outputs:
            session.take_samples()
        return session

    def _warm_up(self, session: WindowSession, seeds: Iterator[int], opponent_us: float = math.inf) -> float:
        """The shortest reported time, in us. Slow calls that take far longer than those of the opponent are not
        awaited to be steady."""
        times_us: list[float] = []
        for _ in count_warmup_calls(session, self._plan.warmup_calls):
            run = self._call(session, self._reference.make_timed_inputs(next(seeds)))
            times_us.append(run.called.claim_us)
            is_slow = len(times_us) >= LEAST_SLOW_CALLS and sum(times_us) > QUICK_S * 1e6
            if is_slow and min(times_us) > HOPELESS * opponent_us:
                break
        return min(times_us)

    def _measure_equals(
        self, name: str, baseline: WindowSession, seeds: Iterator[int], *, briefly: bool = False
    ) -> tuple[Block, ...]:
        """`briefly`: too few pairs for the problem's noise floor."""
        pairs: list[Block] = []
        sampler, began_s = ConditionSampler(self._device, load_matters=False), time.monotonic()
        most = LEAST_EQUAL_PAIRS if briefly else self._plan.min_blocks
        while len(pairs) < LEAST_EQUAL_PAIRS or (len(pairs) < most and time.monotonic() - began_s < EQUAL_S):
            pairs.append(self._measure_pair(baseline, self._other, next(seeds))[0])
            sampler.sample()
        if not briefly:
            self._equal.append(replace(summarise_blocks(name, tuple(pairs), 0.0), conditions=sampler.conclude()))
        return tuple(pairs)

    def _measure_pairs(
        self, baseline: WindowSession, candidate: WindowSession, seeds: Iterator[int], baseline_us: float
    ) -> tuple[list[Block], Conditions]:
        sampler = ConditionSampler(self._device, load_matters=False)
        pairs: list[Block] = []
        checks = self._deal_checks()
        began_s = time.monotonic()
        while not self._is_enough(pairs, time.monotonic() - began_s, baseline_us):
            step = None if pairs and is_hopeless(pairs) else next(checks)
            only_checks = step is not None
            seed = draw_seed(self._reference, seeds, step or "")
            block = self._measure_candidate(baseline, candidate, seed, in_whole=only_checks)
            if not only_checks:
                pairs.append(block)
            sampler.sample()
        return pairs, sampler.conclude()

    def _measure_candidate(
        self, baseline: WindowSession, candidate: WindowSession, seed: int, *, in_whole: bool = False
    ) -> Block:
        """A pair whose outputs may be verified."""
        block, theirs, mine = self._measure_pair(baseline, candidate, seed, in_whole=in_whole)
        self._by_step.setdefault(self._reference.choose_timed_step(seed), []).append(block)
        self._chosen.note(seed, mine, theirs)
        self._is_whole |= mine.sample != theirs.sample  # another layout: its places cannot be compared
        if mine.sample is None and self._pins < MAX_PINS and self._random.random() < KEPT_SHARE:
            candidate.pin(mine.outputs, self._reference.views)  # those change with the next inputs
            self._pins += 1
        return block

    def _deal_checks(self) -> Iterator[str | None]:
        """Of each pair that only checks the step of its inputs, "" for any; None for the others."""
        changed = deal_changed_steps(self._reference, self._random)
        while True:
            places = self._random.sample(range(DEALT_PAIRS), WHOLE_PAIRS)
            dealt: dict[int, str] = dict.fromkeys(places, "as_given")
            dealt |= {place: next(changed) for place in places[:CHANGED_PAIRS]}
            yield from map(dealt.get, range(DEALT_PAIRS))

    def _is_enough(self, pairs: Sequence[Block], spent_s: float, baseline_us: float) -> bool:
        least = self._plan.min_blocks if baseline_us < 1e6 else self._plan.min_blocks_when_slow
        if len(pairs) < least:
            enough = HOPELESS_PAIRS if spent_s < SLOW_S else FEWEST_PAIRS
            if len(pairs) >= enough and is_hopeless(pairs):
                return True
            may_end = len(pairs) >= self._plan.min_blocks_when_slow and spent_s > self._plan.budget_s
            return may_end and (is_hopeless(pairs) or spent_s > PATIENCE * self._plan.budget_s)
        if len(pairs) >= MAX_PAIRS or spent_s > self._plan.budget_s:
            return True
        floor = find_device_floor("cuda", baseline_us)
        return len(pairs) % ASK_EVERY == 0 and is_precise_enough(pairs, self._plan.wanted_half_width, floor)

    def _measure_pair(
        self, baseline: WindowSession, other: WindowSession, seed: int, *, in_whole: bool = False
    ) -> tuple[Block, Run, Run]:
        """Same inputs and state, random order; the other worker is stopped."""
        state = self._reference.make_timed_state(seed)
        inputs = self._reference.make_timed_inputs(seed)
        runs: dict[WindowSession, Run] = {}
        places = self._random.getrandbits(62)
        for session, opponent in self._random.sample(((baseline, other), (other, baseline)), 2):
            opponent.pause()
            try:
                runs[session] = self._call(session, inputs, state, in_whole=in_whole or self._is_whole, places=places)
            finally:
                opponent.resume()
        theirs, mine = runs[baseline], runs[other]
        return make_block(theirs, mine), theirs, mine

    def _call(
        self,
        session: WindowSession,
        inputs: tuple[Any, ...],
        state: dict[str, torch.Tensor] | None = None,
        *,
        in_whole: bool = False,
        places: int | None = None,
    ) -> Run:
        """Raises CandidateFailure (suspect) for outputs of another form."""
        session.reset_state(state)
        return require_form(session.call(inputs, self._device, in_whole=in_whole, places=places))


def count_warmup_calls(session: ModelSession, least: int) -> Iterator[int]:
    """Call once for each number: until outputs no longer come in new memory, which worker and evaluator must map."""
    began_s, calls, steady = time.monotonic(), 0, 0
    while True:
        if time.monotonic() - began_s < QUICK_S:
            is_enough = calls >= least and (steady >= STEADY_CALLS or calls >= MAX_QUICK_CALLS)
        else:
            is_enough = calls >= LEAST_SLOW_CALLS and (steady > 0 or calls >= MAX_WARMUP_CALLS)
        if is_enough:
            return
        yield calls
        calls, steady = calls + 1, 0 if session.saw_new_memory else steady + 1


def await_idle(device: Device) -> None:
    """Raises HarnessError after SETTLE_S."""
    if not device.await_quiet(SETTLE_S):
        raise HarnessError(f"{device.name} was not idle within {SETTLE_S:g} s; end other programs that use it")
