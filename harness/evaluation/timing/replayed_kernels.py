"""Times each kernel of a replayed call, and tells what a replay without the candidate's kernels gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from harness.evaluation.integrity.attribution import OwnedFunction
from harness.evaluation.results import Owner, ReplayedKernels
from harness.evaluation.timing.cold_replays import ColdReplays, Side
from harness.evaluation.timing.copied_results import measure_computed
from harness.evaluation.timing.kept_values import KeptValues, find_kept_values
from harness.protocol.device_memory import NO_FUNCTION
from harness.sandbox.gpu.recording import Graph, NotReplayable
from harness.sandbox.model_session import Run

NAMED = 60  # characters of a name in a finding
WRONG_IN_PARTS = "the call gives other outputs where its parts are timed"
FAILS_WITHOUT = "the rest fails without its kernels, which then cannot be told from copies"
MAY_BE_COPIED = "too few values change with the inputs to tell whether its kernels only move another's result"
OTHER_WORK = "Memcpy, Memset"  # the name of what is no function
ATTRIBUTING = 2  # replays of a graph, the first of which may load code
LONG_US = 50_000.0  # one replay is enough, beside which loading code takes no time


Draw = Callable[[], int]  # of a seed of inputs
Check = Callable[[int, Run], bool]  # of a replay with the inputs of a seed; outputs are valid until the next replay


class Draws(NamedTuple):
    given: Draw
    any: Draw  # of all kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelExaminer:
    """`functions` are those of the side's recording."""

    replays: ColdReplays
    side: Side
    functions: Sequence[OwnedFunction]
    source: random.Random

    def examine_recorded_call(self, draw: Draw, is_wrong: Check) -> ReplayedKernels | None:
        """Attribute work that is right for new inputs, or else for those of the recording. None for neither."""
        for draw_seed, is_general in ((draw, True), (partial(int, self.side.recording.seed), False)):
            times_us = [self._replay_right(draw_seed(), is_wrong) for _ in range(ATTRIBUTING)]
            if None not in times_us:
                found = self.examine(Draws(draw_seed, draw_seed), is_wrong, is_wrong)
                return replace(found, measured_us=times_us[-1], is_general=is_general)
        return None

    def _replay_right(self, seed: int, is_wrong: Check) -> float | None:
        """Return the time in us, or None for wrong outputs."""
        time_us, run = self.replays.replay_alone(self.side, seed)
        return None if is_wrong(seed, run) else time_us

    def examine(self, draws: Draws, is_changed: Check, is_wrong: Check) -> ReplayedKernels:
        """Time each kernel in the call as it is, and leave out the candidate's own ones, without which others may fail
        or wait for ever. All replays are like timed ones: cold, and apart from each other.
        """
        own = [at for at, one in enumerate(self.functions) if one.owner == "custom"]
        unverified = dict.fromkeys(self.functions[at].name[:NAMED] for at in own if not self.functions[at].is_verified)
        found = ReplayedKernels(rows=(), without_custom="not_tried", unverified=tuple(unverified))
        try:
            for _ in range(ATTRIBUTING):
                parts, run = self.replays.time_kernels(self.side, seed := draws.given(), own)
                if sum(parts.times_us.values()) > LONG_US:
                    break
            found = replace(
                found,
                rows=tuple((*self._name(at), us) for at, us in parts.times_us.items()),
                operations=parts.operations,
                doubts=(WRONG_IN_PARTS,) if is_wrong(seed, run) else (),
            )
            return self._leave_out(own, found, draws, is_changed) if own else found
        except (NotReplayable, IndexError):
            self.side.replayer.end()
            return replace(found, without_custom="failed", doubts=(*found.doubts, FAILS_WITHOUT))

    def _name(self, at: int) -> tuple[str, Owner]:
        return (OTHER_WORK, "torch") if at == NO_FUNCTION else self.functions[at][:2]

    def _leave_out(
        self, own: Sequence[int], found: ReplayedKernels, draws: Draws, is_changed: Check
    ) -> ReplayedKernels:
        self.side.replayer.leave_out(own)
        kept: list[KeptValues] = []
        beside = [name for name, owner, _ in found.rows if owner != "custom"]

        def replay(seed: int, graph: Graph) -> tuple[float, Run]:
            for values in kept if graph == "without" else ():
                values.move()
            return self.replays.replay_alone(self.side, seed, graph)

        runs = [replay(seed := draws.given(), "without") for _ in range(ATTRIBUTING)]
        is_needed = is_changed(seed, runs[-1][1])
        found = replace(found, others_us=min(time_us for time_us, _ in runs))
        if not is_needed and beside:
            kept += find_kept_values(self.side.recording, replay, draws.given)
            other_seed = draws.given()
            is_needed = bool(kept) and is_changed(other_seed, replay(other_seed, "without")[1])
        if is_needed and any(name != OTHER_WORK for name in beside):  # copies and fills compute nothing
            seeds = chain([draws.given()], iter(draws.any, None))
            computed = measure_computed(self.side.recording, lambda *given: replay(*given)[1], seeds, self.source)
            is_needed = computed != 0
            doubts = (*found.doubts, MAY_BE_COPIED) if computed is None else found.doubts
            found = replace(found, computed=computed or 1.0, doubts=doubts)
        return replace(found, without_custom="changed" if is_needed else "unchanged")
