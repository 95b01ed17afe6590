"""Times whole calls in successive workers (baseline, candidate, baseline): on a GPU by the evaluator's clock alone, and
on a CPU if two workers do not fit. Drift of the baseline widens the interval. See docs/measurement.md.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from harness.domain import Block, Conditions, HarnessError
from harness.evaluation.correctness.other_states import name_state
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.results import TimingResult, WrongCall
from harness.evaluation.settings import PATIENCE, TimingPlan
from harness.evaluation.timing.block_statistics import (
    FEWEST_PAIRS,
    GIVEN,
    HOPELESS,
    charge_slowest,
    compare_inputs,
    confirm_reported_times,
    decide,
    interval_of,
    is_surely_slower,
    refuse_wrong_call,
    summarise_blocks,
)
from harness.evaluation.timing.chosen_calls import (
    ChosenCalls,
    TimedSeeds,
    draw_seed,
    find_wrong_call,
    make_block,
    require_form,
)
from harness.evaluation.timing.paired import mark_disturbed_unreliable, pin_to_cores
from harness.evaluation.timing.system_conditions import ConditionSampler, find_device_floor
from harness.sandbox.devices import Device
from harness.sandbox.model_session import ModelSession, Run
from harness.tensors.outputs import TensorRecord

HOPELESS_CALLS = 5  # enough of a candidate that is far slower in each, when the time is up
SURE_CALLS = 3  # with given inputs: enough of a candidate whose long calls are surely slower in each
STEADY_CALLS = 4  # in a row with outputs in known memory, before anything is measured; 1 where calls are slow
MAX_WARMUP_CALLS, MAX_QUICK_CALLS, LEAST_SLOW_CALLS, QUICK_S = 12, 40, 2, 1.0  # quick: all within a second
SETTLE_S = 10.0  # for an ended worker to leave the device

Open = Callable[[], AbstractContextManager[ModelSession]]
Calls = list[tuple[int, Run]]  # seed of the inputs, call


class ApartTimer:
    """Uses the evaluator's clock, of a GPU's work."""

    always_samples = False

    def __init__(self, *, reference: Reference, plan: TimingPlan, seed: int) -> None:
        self._reference = reference
        self._device = reference.device
        self._plan = plan
        self._random = random.Random(seed)
        self._chosen = ChosenCalls(reference, replace(plan.choice, screened_share=1.0), self._random)
        self._seeds: list[int] = []  # of the timed inputs
        self._repeated = _Repeated(self._random)

    def measure(self, name: str, open_baseline: Open, open_candidate: Open, seeds: Iterator[int]) -> TimingResult:
        sampler = ConditionSampler(self._device, load_matters=False)

        def choose_first(call_us: float, call_s: float) -> list[int]:
            count = 2 * self._count_calls(call_us, call_s)
            each = FEWEST_PAIRS if count >= self._plan.min_blocks else 1
            steps = [GIVEN] * count + list(self._reference.changed_steps) * each + list(self._reference.compared_steps)
            self._seeds = [draw_seed(self._reference, seeds, step) for step in self._random.sample(steps, len(steps))]
            return self._seeds[::2]

        with pin_to_cores(self._device.evaluator_cores):
            before = self._time_alone(open_baseline, seeds, choose_first, sampler)
            usual = _Usual(*(statistics.median(find(run) for _, run in before) for find in (_call_us, _waited_us)))
            mine = self._time_alone(open_candidate, seeds, lambda *_: self._seeds, sampler, usual)
            after = self._time_alone(open_baseline, seeds, lambda *_: self._seeds[1::2], sampler)
            wrong = self._chosen.find_wrong() or self._repeated.wrong
        theirs = [call for pair in itertools.zip_longest(before, after) for call in pair if call is not None]
        result = self._conclude(name, self._pair(theirs, mine), self._find_floor(before, after), sampler.conclude())
        if wrong is not None:
            return refuse_wrong_call(result.timing, wrong)
        return mark_disturbed_unreliable(result)

    def _find_floor(self, before: Calls, after: Calls) -> float:
        first, second = (
            statistics.median(_call_us(run) for seed, run in calls if self._is_given(seed)) for calls in (before, after)
        )
        return max(find_device_floor(self._device.torch_device.type, first), abs(second / first - 1))

    def _is_given(self, seed: int) -> bool:
        return self._reference.choose_timed_step(seed) == GIVEN

    def _pair(self, theirs: Calls, mine: Calls) -> dict[str, list[Block]]:
        pairs: dict[str, list[Block]] = {GIVEN: []}
        for (seed, baseline), (_, candidate) in zip(theirs, mine, strict=False):
            names = self._reference.choose_timed_step(seed), name_state(self._reference, seed)
            for name in filter(None, names):
                pairs.setdefault(name, []).append(make_block(baseline, candidate))
        return pairs

    def _conclude(self, name: str, pairs: dict[str, list[Block]], floor: float, conditions: Conditions) -> TimingResult:
        """The lower end of the interval holds even if the candidate worked from when its inputs were written."""
        blocks = pairs[GIVEN]
        timing = summarise_blocks(name, blocks, floor)
        longest = [replace(block, candidate_reported_us=block.candidate_evaluator_us) for block in blocks]
        low = min(timing.speedup_low, interval_of(longest)[1] / (1 + floor))
        written_us = statistics.median(block.candidate_evaluator_us - block.candidate_reported_us for block in blocks)
        timing = replace(
            timing,
            speedup_low=low,
            verdict=decide(low, timing.speedup_high),
            overhead_us=0.0,
            resolution_us=written_us,
            conditions=conditions,
            baseline_call_us=timing.baseline_us,
            candidate_call_us=timing.candidate_us,
        )
        counted = [one for one in pairs if one in self._reference.changed_steps or one.startswith(f"{GIVEN} ")]
        slower = (compare_inputs(name, pairs[name], blocks) for name in counted)
        return charge_slowest(TimingResult(timing=timing), [one for one in slower if one is not None])

    def _count_calls(self, usual_us: float, call_s: float) -> int:
        """Use half the planned pairs, since the baseline is timed twice. `call_s` includes all work around the call."""
        plan = self._plan
        is_slow = usual_us >= 1e6 or 2 * plan.min_blocks * call_s > PATIENCE * plan.budget_s
        least = plan.min_blocks_when_slow if is_slow else plan.min_blocks
        return max(-(-least // 2), min(int(plan.budget_s / (4 * call_s)), plan.max_blocks // 2))

    def _time_alone(
        self,
        open_worker: Open,
        seeds: Iterator[int],
        choose: Callable[[float, float], list[int]],
        sampler: ConditionSampler,
        usual: _Usual | None = None,
    ) -> Calls:
        """`choose` selects the seeds, see `warm_up`. `usual`, for the candidate, are the baseline's times."""
        await_idle(self._device)  # work of the previous worker may still run
        with open_worker() as session:
            if self.always_samples or not self._reference.plan.timed_outputs:
                session.take_samples()
            warm = warm_up(session, self._reference, seeds, self._plan.warmup_calls)
            session.collect_garbage()
            chosen, calls, began_s = choose(*warm), Calls(), time.monotonic()
            if usual is not None and self._reference.requires_same_bits:
                chosen = self._repeated.add(chosen)
            for seed, run in self._call_in_turn(session, chosen):
                if usual is not None:
                    if self._repeated.compare(seed, run):
                        continue
                    self._chosen.note(seed, run, self._find_own(seed, run))
                counted = run if usual is None else usual.charge(run)
                calls.append((seed, replace(counted, outputs=replace(run.outputs, tensors=()))))
                sampler.sample()
                if usual is not None and self._is_hopeless(calls, usual.call_us, time.monotonic() - began_s):
                    break
        return calls

    def _find_own(self, seed: int, run: Run) -> Run | None:
        """Return what the reference returns in this call, None if it cannot be computed beside the worker."""
        if self._reference.computes_on is not None:
            return None
        state = self._reference.make_timed_state(seed)
        own = self._reference.outputs_of(self._reference.make_timed_inputs(seed), state)
        return replace(run, outputs=own if run.sample is None else run.sample.take_all(own))

    def _is_hopeless(self, calls: Calls, usual_us: float, spent_s: float) -> bool:
        times_us, given = [_call_us(run) for _, run in calls], sum(self._is_given(seed) for seed, _ in calls)
        if given >= SURE_CALLS and all(is_surely_slower(usual_us, one) for one in times_us):
            return True
        is_late = len(calls) >= HOPELESS_CALLS and spent_s > self._plan.budget_s
        return is_late and all(one > HOPELESS * usual_us for one in times_us)

    def _call_in_turn(self, session: ModelSession, chosen: Sequence[int]) -> Iterator[tuple[int, Run]]:
        """Yield (seed of the inputs, call) with a cold cache."""
        for seed in chosen:
            yield seed, _call(session, self._reference, seed)


class ReportedApartTimer(ApartTimer):
    """Uses the time that a worker on a CPU reports."""

    always_samples = True

    def _conclude(self, name: str, pairs: dict[str, list[Block]], floor: float, conditions: Conditions) -> TimingResult:
        return confirm_reported_times(replace(summarise_blocks(name, pairs[GIVEN], floor), conditions=conditions))

    def _call_in_turn(self, session: ModelSession, chosen: Sequence[int]) -> Iterator[tuple[int, Run]]:
        session.prepare_call(self._reference.make_timed_inputs(chosen[0]))
        for seed in chosen:
            state = self._reference.make_timed_state(seed)
            session.stage(self._reference.make_timed_inputs(seed), state)
            self._device.flush_cache()
            yield seed, require_form(session.complete(session.call_timed()))
        session.disarm()


class _Repeated:
    """A call that is made again at a secret place: where the problem asks for it, it must give the same bits."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._seed: int | None = None
        self._known: TensorRecord | None = None
        self.wrong: WrongCall | None = None

    def add(self, seeds: Sequence[int]) -> list[int]:
        at = self._source.randrange(len(seeds))
        self._seed, again = seeds[at], self._source.randrange(at + 1, len(seeds) + 1)
        return [*seeds[:again], self._seed, *seeds[again:]]

    def compare(self, seed: int, run: Run) -> bool:
        """Return whether the call is the repetition. Samples of outputs are of different places."""
        if seed != self._seed:
            return False
        known, self._known = self._known, TensorRecord.digested(run.outputs.tensors)
        if known is not None and run.sample is None and known.list_changed(run.outputs.tensors):
            message = "timed calls with the same inputs differ, and the problem declares DETERMINISTIC = True"
            self.wrong = WrongCall(message)
        return known is not None


@dataclass(frozen=True, slots=True)
class _Usual:
    """Medians of the baseline."""

    call_us: float
    waited_us: float

    def charge(self, run: Run) -> Run:
        """A program may work before its call, from when its inputs are written: longer waits than usual count."""
        if run.call_us is None:
            return run
        return replace(run, call_us=run.call_us + max(_waited_us(run) - self.waited_us, 0.0))


def _call_us(run: Run) -> float:
    """Use the evaluator's clock on a GPU, and the reported time on a CPU."""
    return run.called.reported_us if run.call_us is None else run.call_us


def _waited_us(run: Run) -> float:
    """Return the time from before the inputs are written until the start signal; none on a CPU."""
    return 0.0 if run.call_us is None else run.evaluator_us - run.call_us


def count_warmup_calls(session: ModelSession, least: int) -> Iterator[int]:
    """Call once per number, until outputs no longer come in new memory, which worker and evaluator must map."""
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


CALLS, LEAST_CALLS, BUDGET_S = 15, 3, 0.15  # one is enough of a program that needs the budget for it
MOST_CALLS = 40  # with those whose outputs lie in new memory, which has to be mapped


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    median_us: float
    wrong: WrongCall | None = None


def warm_up(
    session: ModelSession, reference: Reference, seeds: Iterator[int], least_calls: int = TimingPlan().warmup_calls
) -> tuple[float, float]:
    """For a new worker. Return the shortest time of a call in us, and its time in s with all work around it."""
    times_us: list[float] = []
    spent_s: list[float] = []
    for _ in count_warmup_calls(session, least_calls):
        began_s = time.monotonic()
        times_us.append(_call_us(_call(session, reference, next(seeds))))
        spent_s.append(time.monotonic() - began_s)
    return min(times_us), min(spent_s)


def time_calls(session: ModelSession, reference: Reference, seeds: Iterator[int], *, checks: bool = False) -> CallTime:
    """The worker must be warm. `checks` compares one call with the truth, if one of the inputs' seeds is shared."""
    source = random.Random(next(seeds))
    timed_seeds = TimedSeeds(reference, seeds, source)
    times_us: list[float] = []
    mapped_us: list[float] = []
    checked: tuple[int, Run] | None = None
    until_s = time.monotonic() + BUDGET_S
    calls = 0
    while len(times_us) < CALLS and calls < MOST_CALLS:
        seed = timed_seeds.draw(GIVEN)
        run = _call(session, reference, seed)
        calls += 1
        assert run.call_us is not None
        (mapped_us if session.saw_new_memory else times_us).append(run.call_us)
        if checks and checked is None and timed_seeds.is_shared(seed):
            checked = seed, run
        is_enough = calls >= LEAST_CALLS or run.call_us > 1e6 * BUDGET_S
        if is_enough and time.monotonic() > until_s:
            break
    wrong = None if checked is None else find_wrong_call(reference, *checked, source)
    return CallTime(median_us=statistics.median(times_us or mapped_us), wrong=wrong)


def _call(session: ModelSession, reference: Reference, seed: int) -> Run:
    session.reset_state(reference.make_timed_state(seed))
    return require_form(session.call(reference.make_timed_inputs(seed), reference.device, look=False))
