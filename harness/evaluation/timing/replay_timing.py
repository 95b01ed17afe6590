"""Device time: recorded GPU work of baseline and candidate, replayed in turn on fresh inputs, with a cold cache and
without host code of either. See docs/measurement.md."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace

import torch

from harness.analysis.intervals import bootstrap_ratio_interval
from harness.domain import Block, Conditions, Finding, HarnessError, Timing
from harness.evaluation.correctness.comparison import are_surely_close
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.timing.chosen_calls import ChosenCalls
from harness.evaluation.timing.clocks import HOPELESS, TimingResult, call_suspect, decide
from harness.evaluation.timing.paired import mark_disturbed_unreliable, pin_to_cores
from harness.evaluation.timing.plan import Choice, TimingPlan
from harness.evaluation.timing.slower_inputs import GIVEN, SlowerInputs, charge_slowest
from harness.evaluation.timing.system_conditions import ConditionSampler
from harness.evaluation.timing.timed_calls import deal_changed_steps, draw_seed
from harness.protocol import storage_bytes
from harness.sandbox.gpu.recording import NotReplayable, Recording
from harness.sandbox.gpu.replayer import Clock, Graph, KeptBaseline, Place, Replayer
from harness.sandbox.gpu.window import WindowSession
from harness.sandbox.gpu.workers_ahead import WorkersAhead
from harness.sandbox.model_session import ModelSession, Run
from harness.sandbox.worker_client import PlacedInputs

# Rounds, each in fresh processes: what two of them need for the same work differs by up to a microsecond.
ROUNDS, LONG_US = 3, 200.0  # one is enough of longer calls
DEVICE_PAIRS, HOST_PAIRS = 20, 8  # of a round, in secret order: timed by events, and by the replaying process's clock
CHANGED_SHARE = 0.2  # of pairs: their inputs are of another kind than the given ones
STEADY_PAIRS, STEADY_SHARE = 8, 0.006  # enough in a round if the middle half of their ratios differs by less
HOPELESS_PAIRS = 5  # enough of a candidate that is far slower in each
CALIBRATIONS = 11  # replays of each graph by each side
LEAST_US = 0.05
ALONE = 5  # replays of the baseline before the candidate's first one of a round
# Two processes that replay the same work differ by up to this, as a share and in us.
EQUAL_SHARE, EQUAL_US = 0.006, 0.5
# What forged events could gain: more time by the host's clock than by events counts. A share, and in us.
FORGED_SHARE, FORGED_US = 0.01, 1.0
TRUE_OF_A_KIND, DIFFERENT_OF_A_KIND = 2, 6  # calls compared with the truth; more, if they differ from the baseline's
LATER_SHARE = 0.3  # of those that differ after these
SLOWER_SHARE, SLOWER_US, SLOWER_PAIRS = 1.1, 1.0, 5  # with another kind of inputs, relative to the baseline
SAMPLED_PLACES, SAMPLED_BYTES = 4, 256
CLEAN_BYTES = 256 << 20  # read before each replay, which leaves no modified lines in the cache

Open = Callable[[], AbstractContextManager[ModelSession]]
Record = Callable[[], AbstractContextManager[Recording]]
Keep = Callable[[], AbstractContextManager[KeptBaseline]]


class CandidateNotReplayable(NotReplayable):
    """`baseline_us`: the baseline's device time."""

    def __init__(self, reason: str, baseline_us: float) -> None:
        super().__init__(reason)
        self.baseline_us = baseline_us


@dataclass(slots=True)
class _Side:
    """Times in us: `empty_us` of an empty graph, `nothing_us` of one kernel that does nothing, less the former."""

    recording: Recording
    replayer: Replayer
    empty_us: float = 0.0
    nothing_us: float = 0.0

    def replay(self, clock: Clock, places: Sequence[Place]) -> tuple[float, list[str]]:
        time_us, read = self.replayer.replay("call", clock, places)
        return max(time_us + (self.nothing_us if clock == "host" else -self.empty_us), LEAST_US), read


@dataclass(slots=True)
class _Times:
    """Pairs (baseline, candidate) in us."""

    device: dict[str, list[tuple[float, float]]] = field(default_factory=dict)  # by the kind of inputs
    host: list[tuple[float, float]] = field(default_factory=list)
    alone_us: list[float] = field(default_factory=list)

    @property
    def given(self) -> list[tuple[float, float]]:
        return self.device.get(GIVEN, [])

    @property
    def shorter_us(self) -> float:
        return min(statistics.median(pair[at] for pair in self.given) for at in (0, 1))


class ReplayTimer:
    """For one measurement."""

    def __init__(self, *, reference: Reference, plan: TimingPlan, seed: int, ahead: WorkersAhead) -> None:
        self._reference = reference
        self._device = reference.device
        self._plan = plan
        self._ahead = ahead
        self._random = random.Random(seed)
        self._compared: Counter[str] = Counter()  # calls compared with the truth, by the kind of their inputs
        self._wrong = ""  # what was wrong in a replay, the first
        self._clean: torch.Tensor | None = None

    def measure(self, name: str, record_baseline: Keep, record_candidate: Record, seeds: Iterator[int]) -> TimingResult:
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
                rounds, conditions = self._measure_rounds(stack, baseline, candidate, seeds)
            except NotReplayable as reason:
                self._ahead.finish()
                baseline.end_replayers()  # one may be what failed
                raise CandidateNotReplayable(str(reason), self._measure_alone(baseline, seeds)) from reason
            finally:
                self._clean = None
        result = self._conclude(name, rounds, conditions)
        if self._wrong:
            return call_suspect(result.timing, "timed_call", self._wrong)
        return mark_disturbed_unreliable(result)

    def _open_side(self, stack: ExitStack, recording: Recording) -> _Side:
        """A fresh process, which ends with the stack: its end would disturb the next round."""
        recording.end_worker()
        side = _Side(recording, stack.enter_context(self._ahead.replayer(is_parallel=recording.is_parallel)))
        side.replayer.load(recording)
        return side

    def _take_side(self, baseline: KeptBaseline, number: int) -> _Side:
        """Its process is kept for the next candidates."""
        baseline.recording.end_worker()
        if number == 0 and not all(replayer.is_alive() for replayer in baseline.replayers):
            baseline.end_replayers()
        if number == len(baseline.replayers):
            replayer = self._ahead.take_replayer(is_parallel=baseline.recording.is_parallel)
            baseline.replayers.append(replayer)
            replayer.load(baseline.recording)
        return _Side(baseline.recording, baseline.replayers[number])

    def _renew_one(self, baseline: KeptBaseline) -> None:
        """A process that happens to be fast or slow must not be used for all candidates."""
        if len(baseline.replayers) > 1:
            self._ahead.end_replayer(baseline.replayers.popleft())

    def _measure_rounds(
        self, stack: ExitStack, baseline: KeptBaseline, candidate: Recording, seeds: Iterator[int]
    ) -> tuple[list[_Times], Conditions]:
        sampler = ConditionSampler(self._device, load_matters=False)
        rounds: list[_Times] = []
        while not rounds or (len(rounds) < count_rounds(rounds[0].shorter_us) and not _is_hopeless(rounds[0])):
            sides = self._take_side(baseline, len(rounds)), self._open_side(stack, candidate)
            _calibrate(sides)
            if not rounds:
                self._verify(sides, seeds)
            rounds.append(self._measure_round(sides, seeds, sampler))
        self._renew_one(baseline)
        return rounds, sampler.conclude()

    def _verify(self, sides: Sequence[_Side], seeds: Iterator[int]) -> None:
        """Raises NotReplayable unless first replays with each kind of inputs give right outputs."""
        for step in (GIVEN, *self._reference.changed_steps):
            seed = draw_seed(self._reference, seeds, step)
            self._replay_pair(sides, seed, "device")
            if step == GIVEN:
                self._require_right_baseline(sides[0].recording, seed, self._lay_out(sides[0].recording, seed))
            if self._wrong:
                raise NotReplayable(f"its replay gives other outputs than its calls: {self._wrong}"[:200])

    def _require_right_baseline(self, baseline: Recording, seed: int, placed: PlacedInputs) -> None:
        if self._find_wrong(seed, baseline.describe_run(placed)) is not None:
            raise NotReplayable("the replay of the baseline gives other outputs than its calls")

    def _find_wrong(self, seed: int, run: Run) -> str | None:
        chosen = ChosenCalls(self._reference, Choice(judged_calls=1, screened_share=0.0), self._random)
        chosen.note(seed, run)
        return chosen.find_wrong()

    def _check_outputs(self, sides: Sequence[_Side], seed: int, placed: PlacedInputs) -> None:
        """Compares the outputs of both sides; some calls, and some of each kind of inputs that differ, with the
        truth."""
        theirs, mine = (side.recording.describe_run(placed) for side in sides)
        step = self._reference.choose_timed_step(seed)
        is_close = mine.inputs_unchanged or self._reference.changes_inputs
        is_close &= are_surely_close(theirs.outputs, mine.outputs, self._reference.loaded.problem.tolerance)
        most = TRUE_OF_A_KIND if is_close else DIFFERENT_OF_A_KIND
        is_spared = self._compared[step] >= most and (is_close or self._random.random() > LATER_SHARE)
        if self._wrong or is_spared:
            return
        self._compared[step] += 1
        self._wrong = self._find_wrong(seed, mine) or ""

    def _lay_out(self, recording: Recording, seed: int) -> PlacedInputs:
        return recording.client.lay_out(self._reference.make_timed_inputs(seed))

    def _measure_round(self, sides: Sequence[_Side], seeds: Iterator[int], sampler: ConditionSampler) -> _Times:
        times = _Times()
        for _ in range(ALONE):
            self._prepare(sides[:1], draw_seed(self._reference, seeds, GIVEN))
            times.alone_us.append(self._replay(sides[0], "device", ())[0])
        clocks = self._list_clocks()
        changed = deal_changed_steps(self._reference, self._random)
        for clock in self._random.sample(clocks, len(clocks)):
            is_changed = clock == "device" and self._random.random() < CHANGED_SHARE
            step = (next(changed) or GIVEN) if is_changed else GIVEN
            if clock == "device" and step == GIVEN and _is_steady(times.given):
                continue
            pair = self._replay_pair(sides, draw_seed(self._reference, seeds, step), clock)
            (times.host if clock == "host" else times.device.setdefault(step, [])).append(pair)
            sampler.sample()
            if _is_hopeless(times):
                return times
        for step in self._list_slower(times):
            while len(times.device[step]) < SLOWER_PAIRS:
                pair = self._replay_pair(sides, draw_seed(self._reference, seeds, step), "device")
                times.device[step].append(pair)
        return times

    def _list_clocks(self) -> list[Clock]:
        """Of the pairs of a round: fewer where several cases share the time."""
        share = self._plan.min_blocks / TimingPlan().min_blocks
        device_pairs, host_pairs = max(round(DEVICE_PAIRS * share), 5), max(round(HOST_PAIRS * share), 3)
        clocks: list[Clock] = ["device"] * device_pairs
        return clocks + ["host"] * host_pairs

    def _list_slower(self, times: _Times) -> list[str]:
        """Kinds of inputs that seem to slow the candidate down."""
        return [step for step, pairs in times.device.items() if step != GIVEN and _compare_kind(pairs, times.given) > 1]

    def _replay_pair(self, sides: Sequence[_Side], seed: int, clock: Clock) -> tuple[float, float]:
        """One replay of each on the same inputs, in random order."""
        baseline, candidate = sides
        placed = self._prepare(sides, seed)
        places = self._choose_places(candidate.recording)
        taken = {}
        for side in self._random.sample(sides, 2):
            taken[id(side)] = self._replay(side, clock, places if side is candidate else ())
        self._check_outputs(sides, seed, placed)
        time_us, read = taken[id(candidate)]
        if read != [candidate.recording.read(*place).hex() for place in places]:
            self._wrong = "outputs were still being written when the end of a timed call was seen"
        return taken[id(baseline)][0], time_us

    def _prepare(self, sides: Sequence[_Side], seed: int) -> PlacedInputs:
        """Writes the same inputs for all sides."""
        state = self._reference.make_timed_state(seed) or self._reference.changing
        placed = self._lay_out(sides[0].recording, seed)
        for side in sides:
            side.recording.write_inputs(placed, state.values())
        return placed

    def _replay(self, side: _Side, clock: Clock, places: Sequence[Place]) -> tuple[float, list[str]]:
        """With a cold cache: this process flushes it, which device code of a candidate cannot reach."""
        if self._clean is None:
            self._clean = torch.zeros(CLEAN_BYTES // 4, device=self._device.torch_device)
        self._device.reset_cache()
        self._clean.sum()
        self._device.synchronize()
        return side.replay(clock, places)

    def _choose_places(self, recording: Recording) -> list[Place]:
        """Secret places of the outputs, by their addresses in the worker."""
        found = []
        for _ in range(SAMPLED_PLACES):
            at = self._random.randrange(len(recording.called.specs))
            size_bytes = storage_bytes(recording.called.specs[at])
            if size_bytes:
                width = min(SAMPLED_BYTES, size_bytes)
                found.append((recording.called.addresses[at] + self._random.randrange(size_bytes - width + 1), width))
        return found

    def _measure_alone(self, baseline: KeptBaseline, seeds: Iterator[int]) -> float:
        """The baseline's device time in us. Raises NotReplayable."""
        sides = [self._take_side(baseline, 0)]
        _calibrate(sides)
        times = []
        for number in range(DEVICE_PAIRS):
            seed = draw_seed(self._reference, seeds, GIVEN)
            placed = self._prepare(sides, seed)
            times.append(self._replay(sides[0], "device", ())[0])
            if number == 0:
                self._require_right_baseline(sides[0].recording, seed, placed)
        return statistics.median(times)

    def _conclude(self, name: str, rounds: Sequence[_Times], conditions: Conditions) -> TimingResult:
        pairs = [pair for times in rounds for pair in times.given]
        beside_us, mine_us = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
        alone_us = statistics.median(one for times in rounds for one in times.alone_us)
        # A baseline that is slower beside the candidate counts as it was without it.
        slowed = max(beside_us / alone_us, 1.0) if beside_us > alone_us * (1 + EQUAL_SHARE) + EQUAL_US else 1.0
        hidden_us = _find_forged_us(rounds, beside_us, mine_us)
        factor = 1 / slowed * mine_us / (mine_us + hidden_us)
        ratio, low, high = bootstrap_ratio_interval(
            [one for one, _ in pairs], [other for _, other in pairs], seed=len(pairs)
        )
        medians = [statistics.median(b / c for b, c in times.given) for times in rounds if times.given]
        floor = EQUAL_SHARE + EQUAL_US / min(beside_us, mine_us)
        low, high = min(low, *medians) / (1 + floor) * factor, max(high, *medians) * (1 + floor) * factor
        timing = Timing(
            baseline=name,
            baseline_us=beside_us / slowed,
            candidate_us=mine_us + hidden_us,
            speedup=ratio * factor,
            speedup_low=low,
            speedup_high=high,
            verdict=decide(low, high),
            blocks=tuple(_make_block(*pair) for pair in pairs),
            overhead_us=0.0,
            noise_floor=floor,
            resolution_us=FORGED_US + FORGED_SHARE * mine_us,
            conditions=conditions,
            clock="device",
        )
        findings = []
        if hidden_us:
            message = f"calls take {hidden_us:.1f} us longer by the host's clock than by events; this time counts"
            findings.append(Finding(check="device_events", severity="warning", message=message))
        result = TimingResult(timing=timing, findings=tuple(findings))
        return charge_slowest(result, _list_slower_inputs(rounds))


@contextmanager
def keep_baseline(name: str, start: Open, reference: Reference, seeds: Iterator[int]) -> Iterator[KeptBaseline]:
    """Recorded once for each reference. Raises NotReplayable."""
    if name not in reference.baselines:
        with start() as session:
            try:
                reference.baselines[name] = KeptBaseline(_record(session, reference, seeds))
            except NotReplayable as reason:
                reference.baselines[name] = reason
    kept = reference.baselines[name]
    if isinstance(kept, NotReplayable):
        raise kept
    yield kept


@contextmanager
def record_rival(start: Open, reference: Reference, seeds: Iterator[int]) -> Iterator[KeptBaseline]:
    with start() as session, closing(KeptBaseline(_record(session, reference, seeds))) as kept:
        yield kept


@contextmanager
def record_call(start: Open, reference: Reference, seeds: Iterator[int]) -> Iterator[Recording]:
    """Of a session's program, whose memory stays until the end. Raises NotReplayable."""
    with start() as session, closing(_record(session, reference, seeds)) as recording:
        yield recording


def _record(session: ModelSession, reference: Reference, seeds: Iterator[int]) -> Recording:
    if not isinstance(session, WindowSession):
        raise HarnessError("replays need a GPU session")
    return session.record(reference.make_timed_inputs(draw_seed(reference, seeds, GIVEN)))


def count_rounds(call_us: float) -> int:
    return 1 if call_us > LONG_US else ROUNDS


def label_bound(result: TimingResult, reason: NotReplayable) -> TimingResult:
    """A result by call time, for work that cannot be replayed. Where the baseline's could be, the speedup becomes a
    lower bound: its device time over the candidate's call time."""
    message = f"timed by whole calls, since its GPU work cannot be replayed: {reason}"
    findings = (*result.findings, Finding(check="not_replayable", severity="note", message=message))
    if not isinstance(reason, CandidateNotReplayable):
        return replace(result, findings=findings)
    timing = result.timing
    factor = reason.baseline_us / timing.candidate_us / timing.speedup
    low, high = timing.speedup_low * factor, timing.speedup_high * factor
    bound = replace(
        timing,
        baseline_us=reason.baseline_us,
        speedup=timing.speedup * factor,
        speedup_low=low,
        speedup_high=high,
        verdict=timing.verdict if timing.verdict in ("unconfirmed", "unreliable") else decide(low, high),
        clock="bound",
    )
    return replace(result, timing=bound, findings=findings)


def _calibrate(sides: Sequence[_Side]) -> None:
    """Both graphs are the same for all sides, so a difference is noise. The first replays are slower."""

    def measure(graph: Graph) -> float:
        times = [[side.replayer.replay(graph)[0] for _ in range(CALIBRATIONS)] for side in sides]
        return statistics.mean(statistics.median(some[CALIBRATIONS // 3 :]) for some in times)

    empty_us = measure("empty")
    nothing_us = measure("nothing") - empty_us
    for side in sides:
        side.empty_us, side.nothing_us = empty_us, nothing_us


def _is_steady(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether more pairs in this round would tell nothing new."""
    if len(pairs) < STEADY_PAIRS:
        return False
    low, _, high = statistics.quantiles((theirs / mine for theirs, mine in pairs), n=4)
    return high - low < STEADY_SHARE * low


def _is_hopeless(times: _Times) -> bool:
    given = times.given
    return len(given) >= HOPELESS_PAIRS and all(mine > HOPELESS * theirs for theirs, mine in given)


def _compare_kind(pairs: Sequence[tuple[float, float]], given: Sequence[tuple[float, float]]) -> float:
    """How many times longer the candidate takes with inputs of a kind, relative to the baseline; 1 if by chance."""
    if not pairs or not given:
        return 1.0
    kind, usual = (statistics.median(mine / theirs for theirs, mine in some) for some in (pairs, given))
    lost_us = (kind - usual) * statistics.median(theirs for theirs, _ in given)
    return kind / usual if kind > SLOWER_SHARE * usual and lost_us > SLOWER_US else 1.0


def _list_slower_inputs(rounds: Sequence[_Times]) -> list[SlowerInputs]:
    given = [pair for times in rounds for pair in times.given]
    steps = {step for times in rounds for step in times.device if step != GIVEN}
    by_step = {step: [pair for times in rounds for pair in times.device.get(step, ())] for step in sorted(steps)}
    found = {step: _compare_kind(pairs, given) for step, pairs in by_step.items() if len(pairs) >= SLOWER_PAIRS}
    return [SlowerInputs(step=step, factor=factor) for step, factor in found.items() if factor > 1]


def _find_forged_us(rounds: Sequence[_Times], baseline_us: float, candidate_us: float) -> float:
    """What the candidate takes longer by the host's clock than by events, beyond the baseline; 0 within the bound."""
    host = [pair for times in rounds for pair in times.host]
    if not host:
        return 0.0
    theirs_us, mine_us = (statistics.median(pair[at] for pair in host) for at in (0, 1))
    hidden_us = (mine_us - candidate_us) - max(theirs_us - baseline_us, 0.0)
    return hidden_us if hidden_us > FORGED_US + FORGED_SHARE * candidate_us else 0.0


def _make_block(baseline_us: float, candidate_us: float) -> Block:
    return Block(
        calls=1,
        baseline_claim_us=baseline_us,
        candidate_claim_us=candidate_us,
        baseline_judge_us=baseline_us,
        candidate_judge_us=candidate_us,
    )
