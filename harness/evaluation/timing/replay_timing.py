"""Measures device time: recorded GPU work of baseline and candidate, replayed in turn on fresh inputs, with a cold
cache and without host code of either. See docs/measurement.md.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import cycle

from harness.domain import Conditions
from harness.evaluation.correctness.other_states import name_state
from harness.evaluation.correctness.reference import SMALL_CALL_S, Reference
from harness.evaluation.correctness.truth import trust_outputs
from harness.evaluation.integrity.attribution import CustomKernels, OwnedFunction, find_owners
from harness.evaluation.integrity.code_images import may_launch_kernels
from harness.evaluation.results import ReplayedKernels, TimingResult, WrongCall
from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing.block_statistics import GIVEN, refuse_wrong_call
from harness.evaluation.timing.chosen_calls import TimedSeeds, deal_changed_steps, find_wrong_call
from harness.evaluation.timing.cold_replays import ColdReplays, Side, calibrate
from harness.evaluation.timing.paired import mark_disturbed_unreliable, pin_to_cores
from harness.evaluation.timing.replay_statistics import (
    DECIDED_HOST_PAIRS,
    SURE_PAIRS,
    CandidateNotReplayable,
    ReplayTimes,
    add_use,
    compare_kind,
    conclude_replays,
    count_rounds,
    is_decided,
    is_far_faster,
    is_far_slower,
    is_slow_replay,
    is_steady,
    join_rounds,
    needs_pairs,
)
from harness.evaluation.timing.replayed_kernels import Draws, KernelExaminer
from harness.evaluation.timing.system_conditions import ConditionSampler, measure_energy_mj
from harness.problems.inputs.kind import InputKind
from harness.problems.inputs.kinds import find_kind
from harness.protocol import storage_bytes
from harness.sandbox.gpu.recording import (
    READS_BACK,
    Clock,
    KeptBaseline,
    NotReplayable,
    Place,
    Recording,
)
from harness.sandbox.model_session import Run
from harness.sandbox.worker_client import PlacedInputs
from harness.sandbox.workers_ahead import WorkersAhead
from harness.tensors.outputs import TensorRecord, mostly_differ

DEVICE_PAIRS, HOST_PAIRS = 20, 8  # of a round, in secret order: timed by events, and by the replaying process's clock
CHANGED_SHARE = 0.2  # of pairs: their inputs are of another kind than the given ones
ALONE = 5  # replays of the baseline at first
REPEATED = 2  # replays of a round whose bits are compared with those of another process
# Compared with the truth: calls with shared seeds, of those whose outputs are close to the baseline's only a few; the
# first ones that differ from the baseline's beyond the tolerance, and a share of later ones; and a share of the others,
# where that takes little time. Where computing the truth takes long, the first ones are fewer: of given inputs, whose
# outputs seldom differ, and of others.
CLOSE_OF_A_KIND, DIFFERENT_OF_A_KIND, LATER_SHARE, DIFFERENT_SHARE = 2, 12, 0.1, 0.3
FEW_GIVEN, FEW_OTHERS = 3, 1
# Of the time budget: replays after the timed ones, each with fresh inputs; and how many times as long those of kinds
# whose time counts may take.
FURTHER_SHARE, LONGER = 1 / 12, 2
SAMPLED_PLACES, SAMPLED_BYTES = 4, 256
ROW_US = 5000.0  # of replays in a row, after which the energy counter is read

Record = Callable[[], AbstractContextManager[Recording]]
Keep = Callable[[], AbstractContextManager[KeptBaseline]]
ListOwned = Callable[[], Sequence[OwnedFunction] | None]


class ReplayTimer:
    def __init__(
        self,
        *,
        reference: Reference,
        plan: TimingPlan,
        seeds: Iterator[int],
        ahead: WorkersAhead,
        measures_energy: bool = False,
        custom: CustomKernels | None = None,
        libraries: Sequence[str] = (),
    ) -> None:
        """`libraries` are those that were built for the candidate."""
        self._reference = reference
        self._device = reference.device
        self._plan = plan
        self._ahead = ahead
        self._random = random.Random(next(seeds))
        self._seeds = TimedSeeds(reference, seeds, self._random)
        self._compared: Counter[str] = Counter()  # calls compared with the truth, by the kind of their inputs
        self._wrong: WrongCall | None = None  # the first
        self._alone_us: dict[str, list[float]] = {}  # of the candidate, by kinds for which the baseline is not replayed
        self._checked: dict[str, list[tuple[float, float]]] = {}  # times of checked calls, by kinds whose time counts
        self._is_hopeless = False  # the first replays of each side were such that few more decide
        self._replays = ColdReplays(reference)
        self._measures_energy = measures_energy
        self._custom = custom
        self._libraries = libraries
        self.kernels: ReplayedKernels | None = None  # also of work that can be replayed for its own inputs only
        self._energy_mj: list[float | None] = [None, None]  # of baseline and candidate
        self._elsewhere: Side | None = None  # the candidate, in a process that only repeats replays for their bits

    def measure(self, name: str, record_baseline: Keep, record_candidate: Record) -> TimingResult:
        """Raises NotReplayable, or CandidateNotReplayable if only the baseline's work can be replayed."""
        if self._ahead.forkserver.unrecordable:
            raise NotReplayable(self._ahead.forkserver.unrecordable)
        if not self._reference.plan.baseline_beside:
            raise NotReplayable("device memory is too short for both sides")
        with pin_to_cores(self._device.evaluator_cores), ExitStack() as stack:
            baseline = stack.enter_context(record_baseline())
            try:
                candidate = stack.enter_context(record_candidate())
                self._ahead.finish()  # nothing else starts or ends while the clock runs
                list_owned = self._begin_finding_owners(stack, baseline, candidate)
                if candidate.reads_back:
                    self._examine_recorded_call(stack, candidate, list_owned())
                    raise NotReplayable(READS_BACK)
                rounds, conditions = self._measure_rounds(stack, baseline, candidate, list_owned)
                memory_bytes = baseline.recording.own_bytes, candidate.own_bytes
            except NotReplayable as reason:
                self._ahead.finish()
                baseline.end_replayers()  # one may be what failed
                if baseline.recording.reads_back:  # its device time lacks what both do on the host
                    raise
                raise CandidateNotReplayable(str(reason), self._measure_alone(baseline)) from reason
            finally:
                self._replays.close()
        result = add_use(conclude_replays(name, rounds, conditions), memory_bytes, self._energy_mj)
        if self._wrong:
            return refuse_wrong_call(result.timing, self._wrong)
        return mark_disturbed_unreliable(result)

    def _take_side(self, baseline: KeptBaseline, number: int) -> Side:
        baseline.recording.end_worker()
        if number == 0 and not all(replayer.is_alive() for replayer in baseline.replayers):
            baseline.end_replayers()
        if number == len(baseline.replayers):
            replayer = self._ahead.take_replayer(is_parallel=baseline.recording.is_parallel)
            baseline.replayers.append(replayer)
            replayer.load(baseline.recording)
        return Side(baseline.recording, baseline.replayers[number])

    def _open_side(self, stack: ExitStack, candidate: Recording) -> Side:
        side = Side(candidate, stack.enter_context(self._ahead.replayer(is_parallel=candidate.is_parallel)))
        side.replayer.load(candidate)
        return side

    def _measure_rounds(
        self,
        stack: ExitStack,
        baseline: KeptBaseline,
        candidate: Recording,
        list_owned: ListOwned,
    ) -> tuple[list[ReplayTimes], Conditions]:
        sampler = ConditionSampler(self._device, load_matters=False)
        rounds: list[ReplayTimes] = []
        if self._reference.requires_same_bits:
            self._elsewhere = self._open_side(stack, candidate)
        while not rounds or (len(rounds) < count_rounds(rounds[0].shorter_us) and not is_decided(rounds[0])):
            theirs = self._take_side(baseline, len(rounds))
            sides = theirs, self._open_side(stack, candidate)
            calibrate(sides)
            if not rounds:
                self._is_hopeless = self._verify(sides)
            rounds.append(self._measure_round(sides, sampler))
        if not (self._is_hopeless and is_far_slower(rounds[0])):
            self._check_further(sides)
            self._repeat_slower(sides, rounds)
            self._require_known_time(sides[1], rounds[0].given)
        if self._measures_energy:
            self._energy_mj = self._measure_energy(sides, rounds[0])
        if (functions := list_owned()) is not None:

            def is_changed(seed: int, run: Run) -> bool:
                theirs, kind = self._replays.replay_alone(sides[0], seed)[1], self._reference.find_timed_kind(seed)
                return self._differs(theirs, run, kind)

            def is_wrong(seed: int, run: Run) -> bool:
                return is_changed(seed, run) and self._find_wrong(seed, run) is not None

            draws = Draws(partial(self._seeds.draw_usual, GIVEN), self._draw_any)
            found = self._examine(sides[1], functions).examine(draws, is_changed, is_wrong)
            self.kernels = replace(found, measured_us=statistics.median(pair[1] for pair in rounds[0].given))
        # A process that happens to be fast or slow must not be used for all candidates.
        if len(baseline.replayers) > 1:
            self._ahead.end_replayer(baseline.replayers.popleft())
        return rounds, sampler.conclude()

    def _begin_finding_owners(self, stack: ExitStack, baseline: KeptBaseline, candidate: Recording) -> ListOwned:
        """Return a function that waits for the result: compiling kernels again takes about a second, on cores that are
        not the replayers'. It returns None if time is not attributed. Raises NotReplayable.
        """
        candidate.end_worker()
        functions = candidate.list_functions()
        if may_launch_kernels(functions, self._libraries):
            raise NotReplayable("its kernels may launch others from the device, which a replay does not await")
        if self._custom is None:
            return lambda: None
        pool = stack.enter_context(ThreadPoolExecutor(1, "owners"))
        found = pool.submit(find_owners, functions, replace(self._custom, theirs=baseline.functions))
        if not self._device.evaluator_cores.isdisjoint(self._device.replayer_cores):
            wait([found])
        return found.result

    def _examine_recorded_call(
        self, stack: ExitStack, candidate: Recording, functions: Sequence[OwnedFunction] | None
    ) -> None:
        if functions is None:
            return
        with suppress(NotReplayable):
            side = self._open_side(stack, candidate)
            calibrate([side])
            self.kernels = self._examine(side, functions).examine_recorded_call(
                partial(self._seeds.draw_usual, GIVEN), lambda seed, run: self._find_wrong(seed, run) is not None
            )

    def _examine(self, side: Side, functions: Sequence[OwnedFunction]) -> KernelExaminer:
        return KernelExaminer(replays=self._replays, side=side, functions=functions, source=self._random)

    def _draw_given(self) -> int:
        return self._seeds.draw_fresh(GIVEN)

    def _draw_any(self) -> int:
        return self._seeds.draw_usual(self._random.choice((GIVEN, *self._reference.replayed_steps)))

    def _check_further(self, sides: Sequence[Side]) -> None:
        """Find faults that show for few inputs only: compare many more calls of each kind with the baseline's. Kinds
        whose time counts have as many calls as variants, also if their inputs take long to make.
        """
        time_s = self._plan.budget_s * FURTHER_SHARE
        steps = (GIVEN, *self._reference.replayed_steps)
        self._check_calls(sides, cycle(self._random.sample(steps, len(steps))), time_s)
        few = [
            step
            for step in self._reference.changed_steps
            for _ in range(len(self._checked.get(step, ())), find_kind(step).count_calls(is_small=True))
        ]
        self._check_calls(sides, self._random.sample(few, len(few)), LONGER * time_s)

    def _check_calls(self, sides: Sequence[Side], steps: Iterable[str], time_s: float) -> None:
        until_s = time.monotonic() + time_s
        for step in steps:
            if self._wrong or time.monotonic() > until_s:
                return
            self._check_call(sides, self._seeds.draw_fresh(step), step)

    def _check_call(self, sides: Sequence[Side], seed: int, step: str) -> tuple[float, float] | None:
        """Return the times of both sides. The recorded work of a baseline that reads values back, which may select it,
        is for given inputs only; others are compared with the truth.
        """
        if step == GIVEN or not sides[0].recording.reads_back:
            pair = self._replay_pair(sides, seed, "device")
            names = [step] * (step in self._reference.changed_steps) + [name_state(self._reference, seed)]
            for name in filter(None, names):
                self._checked.setdefault(name, []).append(pair)
            return pair
        time_us, run = self._replays.replay_alone(sides[1], seed)
        self._alone_us.setdefault(step, []).append(time_us)
        self._wrong = self._wrong or self._find_wrong(seed, run)
        return None

    def _require_known_time(self, side: Side, given: Sequence[tuple[float, float]]) -> None:
        """Raises NotReplayable for a candidate that is slower for inputs for which the baseline's work is not known."""
        usual_us = statistics.median(theirs for theirs, _ in given)
        for step, times_us in self._alone_us.items():
            pairs = [(usual_us, one) for one in times_us]
            while needs_pairs(pairs, given):
                pairs.append((usual_us, self._replays.replay_alone(side, self._seeds.draw(step))[0]))
            if compare_kind(pairs, given) > 1:
                raise NotReplayable(f"it is slower for {step} inputs, for which the baseline's work is not recorded")

    def _measure_energy(self, sides: Sequence[Side], times: ReplayTimes) -> list[float | None]:
        """Replays in a row need calls that leave inputs and state as they are."""
        if self._reference.changes_inputs or self._reference.changing:
            return [None, None]
        usual_us = (statistics.median(pair[at] for pair in times.given) for at in (0, 1))
        rows = (max(round(ROW_US / one), 1) for one in usual_us)
        with suppress(NotReplayable):
            return [
                measure_energy_mj(self._device, partial(side.replayer.replay_in_row, count))
                for side, count in zip(sides, rows, strict=True)
            ]
        return [None, None]

    def _verify(self, sides: Sequence[Side]) -> bool:
        """Return True if the candidate is surely slower in each replay; two are enough then. Raises NotReplayable
        unless first replays with each kind of inputs give right outputs.
        """
        steps = self._reference.replayed_steps
        is_hopeless = True
        for number, step in enumerate((GIVEN, *self._random.sample(steps, len(steps)))):
            if is_hopeless and number > 1:
                break
            seed = self._seeds.draw_shared(step)
            times = self._check_call(sides, seed, step)
            is_hopeless &= times is None or is_slow_replay(*times)
            if step == GIVEN:
                self._require_right_baseline(sides[0].recording, seed, self._replays.lay_out(sides[0].recording, seed))
            if self._wrong:
                raise NotReplayable(f"its replay gives other outputs than its calls: {self._wrong.message}"[:200])
        return is_hopeless

    def _replay_twice(self, sides: Sequence[Side], seed: int, clock: Clock) -> tuple[float, float]:
        """Replay a pair like any other, and the candidate once more elsewhere, beginning with the same memory. Raises
        NotReplayable if the bits differ.
        """
        assert self._elsewhere is not None
        recording = sides[1].recording
        with recording.restored():
            pair = self._replay_pair(sides, seed, clock)
            outputs = recording.describe_run(self._replays.lay_out(recording, seed)).outputs.tensors
            known = TensorRecord.digested(outputs)
        if known.list_changed(self._replays.replay_alone(self._elsewhere, seed)[1].outputs.tensors):
            raise NotReplayable("replays with the same inputs differ, and the problem declares DETERMINISTIC = True")
        return pair

    def _require_right_baseline(self, baseline: Recording, seed: int, placed: PlacedInputs) -> None:
        if self._find_wrong(seed, baseline.describe_run(placed)) is not None:
            raise NotReplayable("the replay of the baseline gives other outputs than its calls")

    def _find_wrong(self, seed: int, run: Run) -> WrongCall | None:
        return find_wrong_call(self._reference, seed, run, self._random)

    def _check_outputs(self, sides: Sequence[Side], seed: int, placed: PlacedInputs) -> None:
        theirs, mine = (side.recording.describe_run(placed) for side in sides)
        step, is_shared = self._reference.choose_timed_step(seed), self._seeds.is_shared(seed)
        kind, is_valid = self._reference.find_timed_kind(seed), mine.inputs_unchanged or self._reference.changes_inputs
        if is_valid and self._reference.is_surely_close(theirs.outputs, mine.outputs, kind):
            is_compared = is_shared and self._compared[step] < CLOSE_OF_A_KIND
        else:
            is_compared = is_shared or (self._reference.is_small and self._random.random() < DIFFERENT_SHARE)
            few = FEW_GIVEN if step == GIVEN else FEW_OTHERS
            most = DIFFERENT_OF_A_KIND if self._reference.call_s <= SMALL_CALL_S else few
            if not is_compared and (self._compared[step] < most or self._random.random() < LATER_SHARE):
                is_compared = not is_valid or self._differs(theirs, mine, kind)
        if is_compared and not self._wrong:
            self._compared[step] += 1
            self._wrong = self._find_wrong(seed, mine)

    def _differs(self, theirs: Run, mine: Run, kind: InputKind) -> bool:
        if self._reference.is_surely_close(theirs.outputs, mine.outputs, kind):
            return False
        is_fixed = self._reference.loaded.problem.tolerance.is_fixed
        if not is_fixed and mostly_differ(theirs.outputs.tensors, mine.outputs.tensors):
            return True
        return self._reference.compare(trust_outputs(theirs.outputs), mine.outputs, "timed", kind)[0] is not None

    def _measure_round(self, sides: Sequence[Side], sampler: ConditionSampler) -> ReplayTimes:
        times = ReplayTimes()
        for _ in range(ALONE):
            self._replays.prepare(sides[:1], self._draw_given())
            times.alone_us.append(self._replays.replay(sides[0])[0])
        few: list[Clock] = ["device"] * (SURE_PAIRS * self._is_hopeless)
        clocks = self._list_clocks()
        changed = deal_changed_steps(self._reference, self._random)
        may_change = not sides[0].recording.reads_back  # else the baseline's work for other inputs is not known
        repeats = sorted(self._random.sample(range(len(clocks)), REPEATED)) if self._elsewhere else []
        for number, clock in enumerate([*few, *self._random.sample(clocks, len(clocks))]):
            is_free = clock == "device" and may_change and len(times.given) >= max(len(few), 1)
            is_changed = is_free and self._random.random() < CHANGED_SHARE
            step = next(changed) if is_changed else GIVEN
            if step == GIVEN and _is_enough(times, clock):
                continue
            is_repeated = bool(repeats) and number >= repeats[0]
            replay = self._replay_twice if is_repeated else self._replay_pair
            pair = replay(sides, seed := self._seeds.draw(step), clock)
            del repeats[:is_repeated]
            times.add(pair, (step, name_state(self._reference, seed)), clock)
            sampler.sample()
            if is_far_slower(times):
                return times
        for _ in repeats:
            self._replay_twice(sides, self._draw_given(), "device")
        return times

    def _repeat_slower(self, sides: Sequence[Side], rounds: Sequence[ReplayTimes]) -> None:
        """Time more pairs of kinds of inputs, and of groups of states, for some of which the candidate seems slower,
        also where it was only checked.
        """
        for step, pairs in self._checked.items():
            rounds[-1].device.setdefault(step, []).extend(pairs)
        for step in [one for one in join_rounds(rounds) if one != GIVEN]:
            draw = self._seeds.draw_in_state if step.startswith(GIVEN) else self._seeds.draw
            while needs_pairs((known := join_rounds(rounds))[step], known[GIVEN]):
                pair = self._replay_pair(sides, draw(step), "device")
                rounds[-1].device.setdefault(step, []).append(pair)

    def _list_clocks(self) -> list[Clock]:
        share = self._plan.min_blocks / TimingPlan().min_blocks
        device_pairs, host_pairs = max(round(DEVICE_PAIRS * share), 5), max(round(HOST_PAIRS * share), 3)
        clocks: list[Clock] = ["device"] * device_pairs
        return clocks + ["host"] * host_pairs

    def _replay_pair(self, sides: Sequence[Side], seed: int, clock: Clock) -> tuple[float, float]:
        baseline, candidate = sides
        placed = self._replays.prepare(sides, seed)
        places = self._choose_places(candidate.recording)
        taken = {}
        for side in self._random.sample(sides, 2):
            taken[id(side)] = self._replays.replay(side, clock, places if side is candidate else ())
        self._check_outputs(sides, seed, placed)
        time_us, read = taken[id(candidate)]
        if read != [candidate.recording.read(*place).hex() for place in places]:
            self._wrong = WrongCall("outputs were still being written when the end of a timed call was seen")
        return taken[id(baseline)][0], time_us

    def _choose_places(self, recording: Recording) -> list[Place]:
        found = []
        for _ in range(SAMPLED_PLACES):
            at = self._random.randrange(len(recording.called.specs))
            size_bytes = storage_bytes(recording.called.specs[at])
            if size_bytes:
                width = min(SAMPLED_BYTES, size_bytes)
                found.append((recording.called.addresses[at] + self._random.randrange(size_bytes - width + 1), width))
        return found

    def _measure_alone(self, baseline: KeptBaseline) -> float:
        """Return the baseline's device time in us. Raises NotReplayable."""
        sides = [self._take_side(baseline, 0)]
        calibrate(sides)
        times = []
        for number in range(DEVICE_PAIRS):
            seed = self._draw_given()
            placed = self._replays.prepare(sides, seed)
            times.append(self._replays.replay(sides[0])[0])
            if number == 0:
                self._require_right_baseline(sides[0].recording, seed, placed)
        return statistics.median(times)


def _is_enough(times: ReplayTimes, clock: Clock) -> bool:
    if clock == "host":
        return len(times.host) >= DECIDED_HOST_PAIRS and is_far_faster(times)
    return is_steady(times.given) or is_far_faster(times)
