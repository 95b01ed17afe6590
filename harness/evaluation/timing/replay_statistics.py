"""Computes a speedup from the times of replays, by pure functions. See docs/measurement.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from harness.analysis.intervals import bootstrap_ratio_interval
from harness.domain import Block, Conditions, Finding, Timing
from harness.evaluation.results import ReplayedKernels, TimingResult
from harness.evaluation.timing.block_statistics import (
    GIVEN,
    HOPELESS,
    SlowerInputs,
    charge_slowest,
    decide,
    is_surely_slower,
    scale_speedup,
)
from harness.sandbox.gpu.recording import Clock, NotReplayable

# Rounds, each in fresh processes: what two of them need for the same work differs by up to a microsecond.
ROUNDS, LONG_US = 3, 200.0  # one is enough of longer calls
STEADY_PAIRS, STEADY_SHARE = 8, 0.006  # enough in a round if the middle half of their ratios differs by less
DECIDED_PAIRS, DECIDED_HOST_PAIRS = 5, 3  # enough, in one round, of a candidate that is far slower or faster in each
SURE_PAIRS, SURELY_SLOWER, SLOW_US = 2, 1.5, 1_000.0  # enough of a candidate whose long calls are slower in each
FAR_FASTER = 10.0
# Two processes that replay the same work differ by up to this, as a share and in us.
EQUAL_SHARE, EQUAL_US = 0.006, 0.5
# What forged events could gain: more time by the host's clock than by events counts. A share, and in us.
FORGED_SHARE, FORGED_US = 0.01, 1.0
# With another kind of inputs, relative to the baseline: enough slower pairs, where they are one of so many.
SLOWER_SHARE, SLOWER_US, SLOWER_PAIRS, SLOWER_ONE_IN = 1.1, 1.0, 5, 10
STATES_ONE_IN = 2  # the same of states
LONGER_THAN_CALLS = 1.2  # replays, which lack the host's part of a call

# More memory than the baseline's that is worth a warning: this often, and more than torch's allocator takes at once.
MEMORY_FACTOR, SEGMENT_BYTES = 2, 20 << 20


Pair = tuple[float, float]  # times of baseline and candidate


@dataclass(slots=True)
class ReplayTimes:
    # By the kind of inputs; of given ones by groups of states, too.
    device: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    host: list[tuple[float, float]] = field(default_factory=list)
    alone_us: list[float] = field(default_factory=list)

    def add(self, pair: Pair, names: Sequence[str], clock: Clock) -> None:
        if clock == "host":
            self.host.append(pair)
            return
        for name in filter(None, names):
            self.device.setdefault(name, []).append(pair)

    @property
    def given(self) -> list[tuple[float, float]]:
        return self.device.get(GIVEN, [])

    @property
    def shorter_us(self) -> float:
        return min(statistics.median(pair[at] for pair in self.given) for at in (0, 1))


class CandidateNotReplayable(NotReplayable):
    """`baseline_us` is the baseline's device time."""

    def __init__(self, reason: str, baseline_us: float) -> None:
        super().__init__(reason)
        self.baseline_us = baseline_us


def relate_to_calls(kernels: ReplayedKernels, call_us: float) -> ReplayedKernels:
    """Work that takes longer than calls, which are timed instead of its replays, is not what they do."""
    is_excess = (kernels.measured_us or 0.0) > call_us * LONGER_THAN_CALLS
    rows = tuple((name, "other" if is_excess and owner == "custom" else owner, us) for name, owner, us in kernels.rows)
    return replace(kernels, rows=rows, measured_us=call_us)


def conclude_replays(name: str, rounds: Sequence[ReplayTimes], conditions: Conditions) -> TimingResult:
    pairs = [pair for times in rounds for pair in times.given]
    beside_us, mine_us = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
    alone_us = statistics.median(one for times in rounds for one in times.alone_us)
    # A baseline that is slower beside the candidate counts as it was without it.
    slowed = max(beside_us / alone_us, 1.0) if beside_us > alone_us * (1 + EQUAL_SHARE) + EQUAL_US else 1.0
    hidden_us = find_forged_us(rounds, beside_us, mine_us)
    factor = 1 / slowed * mine_us / (mine_us + hidden_us)
    ratio, low, high = bootstrap_ratio_interval(
        [one for one, _ in pairs], [other for _, other in pairs], seed=len(pairs)
    )
    medians = [statistics.median(b / c for b, c in times.given) for times in rounds if times.given]
    floor = EQUAL_SHARE + EQUAL_US / min(beside_us, mine_us)
    floor *= 2 if len(rounds) < count_rounds(min(beside_us, mine_us)) else 1
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
    return charge_slowest(result, list_slower_inputs(rounds))


def add_use(result: TimingResult, memory_bytes: tuple[int, int], energy_mj: Sequence[float | None]) -> TimingResult:
    """Add memory and energy of baseline and candidate, with a warning of a candidate that needs far more memory."""
    timing = replace(
        result.timing,
        baseline_bytes=memory_bytes[0],
        candidate_bytes=memory_bytes[1],
        baseline_mj=energy_mj[0],
        candidate_mj=energy_mj[1],
    )
    theirs, mine = memory_bytes
    if mine < MEMORY_FACTOR * theirs or mine - theirs < SEGMENT_BYTES:
        return replace(result, timing=timing)
    message = (
        f"a call holds {mine >> 20} MiB of device memory beside its inputs, {mine / max(theirs, 1):.1f} times as much "
        f"as the baseline ({theirs >> 20} MiB)"
    )
    finding = Finding(check="memory_use", severity="warning", message=message)
    return replace(result, timing=timing, findings=(*result.findings, finding))


def count_rounds(call_us: float) -> int:
    return 1 if call_us > LONG_US else ROUNDS


def label_bound(result: TimingResult, reason: NotReplayable) -> TimingResult:
    """Label a result by call time. If the baseline is replayed, its device time over the call time is a lower bound. It
    cannot exceed the baseline's own call, of which it is a part. A bound below 1 does not show that the candidate is
    slower: its calls must be slower than the baseline's.
    """
    message = f"timed by whole calls, since its GPU work cannot be replayed: {reason}"
    findings = (*result.findings, Finding(check="not_replayable", severity="note", message=message))
    if not isinstance(reason, CandidateNotReplayable):
        return replace(result, findings=findings)
    timing = result.timing
    baseline_us = min(reason.baseline_us, timing.baseline_us)
    factor = baseline_us / timing.candidate_us / timing.speedup
    bound = replace(scale_speedup(timing, factor), baseline_us=baseline_us, clock="bound")
    if bound.verdict == "slower" != timing.verdict:
        bound = replace(bound, verdict="tie")
    return replace(result, timing=bound, findings=findings)


def is_steady(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return True if more pairs in this round would not change the result."""
    if len(pairs) < STEADY_PAIRS:
        return False
    low, _, high = statistics.quantiles((theirs / mine for theirs, mine in pairs), n=4)
    return high - low < STEADY_SHARE * low


is_slow_replay = partial(is_surely_slower, slow_us=SLOW_US, times=SURELY_SLOWER)  # of times of both sides


def is_far_slower(times: ReplayTimes) -> bool:
    given = times.given
    if len(given) >= SURE_PAIRS and all(is_slow_replay(*pair) for pair in given):
        return True
    return len(given) >= DECIDED_PAIRS and all(mine > HOPELESS * theirs for theirs, mine in given)


def is_far_faster(times: ReplayTimes) -> bool:
    given = times.given
    return len(given) >= DECIDED_PAIRS and all(mine > EQUAL_US and theirs > FAR_FASTER * mine for theirs, mine in given)


def is_decided(times: ReplayTimes) -> bool:
    return is_far_slower(times) or is_far_faster(times)


def list_slower(pairs: Sequence[Pair], given: Sequence[Pair]) -> list[float]:
    """Return the factors by which inputs of a kind slow the candidate relative to the baseline, where not by chance."""
    usual = statistics.median(mine / theirs for theirs, mine in given)
    usual_us = statistics.median(theirs for theirs, _ in given)
    ratios = [mine / theirs for theirs, mine in pairs]
    return [one / usual for one in ratios if one > SLOWER_SHARE * usual and (one - usual) * usual_us > SLOWER_US]


def needs_pairs(pairs: Sequence[Pair], given: Sequence[Pair]) -> bool:
    """Return True if more pairs decide whether the candidate is slower for a part of a kind's inputs."""
    slower = len(list_slower(pairs, given))
    return 0 < slower < SLOWER_PAIRS and len(pairs) < SLOWER_ONE_IN * slower


def compare_kind(pairs: Sequence[Pair], given: Sequence[Pair], *, are_states: bool = False) -> float:
    """Return the factor of the inputs of a kind that slow the candidate; 1 if they are few. Of states these must be
    more, since a program may do in few calls what the others need not.
    """
    factors = list_slower(pairs, given)
    is_enough = len(factors) >= SLOWER_PAIRS and not (are_states and STATES_ONE_IN * len(factors) < len(pairs))
    return statistics.median(factors) if is_enough else 1.0


def join_rounds(rounds: Sequence[ReplayTimes]) -> dict[str, list[Pair]]:
    """By the kind of inputs, and by groups of states."""
    steps = dict.fromkeys(step for times in rounds for step in times.device)
    return {step: [pair for times in rounds for pair in times.device.get(step, ())] for step in steps}


def list_slower_inputs(rounds: Sequence[ReplayTimes]) -> list[SlowerInputs]:
    pairs = join_rounds(rounds)
    given = pairs.pop(GIVEN)
    found = {step: compare_kind(some, given, are_states=step.startswith(GIVEN)) for step, some in pairs.items()}
    return [SlowerInputs(step=step, factor=factor) for step, factor in found.items() if factor > 1]


def find_forged_us(rounds: Sequence[ReplayTimes], baseline_us: float, candidate_us: float) -> float:
    """Return how much the host's clock exceeds the events, beyond up to FORGED_US of the baseline's excess; 0 within
    the bound."""
    host = [pair for times in rounds for pair in times.host]
    if not host:
        return 0.0
    theirs_us, mine_us = (statistics.median(pair[at] for pair in host) for at in (0, 1))
    hidden_us = (mine_us - candidate_us) - min(max(theirs_us - baseline_us, 0.0), FORGED_US)
    return hidden_us if hidden_us > FORGED_US + FORGED_SHARE * candidate_us else 0.0


def _make_block(baseline_us: float, candidate_us: float) -> Block:
    return Block(
        calls=1,
        baseline_reported_us=baseline_us,
        candidate_reported_us=candidate_us,
        baseline_evaluator_us=baseline_us,
        candidate_evaluator_us=candidate_us,
    )
