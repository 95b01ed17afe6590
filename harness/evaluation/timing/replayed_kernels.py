"""Times each kernel of a replayed call, and tells what a replay without the candidate's kernels gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from harness.evaluation.integrity.attribution import OwnedFunction
from harness.evaluation.results import Owner, ReplayedKernels
from harness.evaluation.timing.cold_replays import ColdReplays, Side
from harness.evaluation.timing.copied_results import examine_copies
from harness.evaluation.timing.kept_values import KeptValues, find_kept_values
from harness.sandbox.gpu.recording import Graph, NotReplayable
from harness.sandbox.model_session import Run

NAMED = 60  # characters of a name in a finding
WRONG_IN_ORDER = "the call's work gives other outputs one after the other, as its parts are timed"
MAY_BE_COPIED = "too few values change with the inputs to tell whether its kernels only move another's result"
OTHER, OTHER_WORK = -1, "Memcpy, Memset"  # an index in place of a function's, and its name
ATTRIBUTING = 2  # replays of a graph, the first of which may load code


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
        """Time each kernel, and leave out the candidate's own ones, without which others may fail or wait for ever. All
        replays are like timed ones: cold, and apart from each other.
        """
        own = [at for at, one in enumerate(self.functions) if one.owner == "custom"]
        unverified = dict.fromkeys(self.functions[at].name[:NAMED] for at in own if not self.functions[at].is_verified)
        found = ReplayedKernels(rows=(), without_custom="not_tried", unverified=tuple(unverified))
        try:
            times_us, is_right = self._time_kernels(draws.given, is_wrong)
            found = replace(
                found,
                rows=tuple((*self._name(at), us) for at, us in times_us.items()),
                doubts=() if is_right else (WRONG_IN_ORDER,),
            )
            return self._leave_out(own, times_us, found, draws, is_changed) if own else found
        except (NotReplayable, IndexError):
            self.side.replayer.end()
            return replace(found, without_custom="failed")

    def _name(self, at: int) -> tuple[str, Owner]:
        return (OTHER_WORK, "torch") if at == OTHER else self.functions[at][:2]

    def _time_kernels(
        self, draw: Draw, is_wrong: Check | None = None, without: Sequence[int] = ()
    ) -> tuple[dict[int, float], bool]:
        """Return the time in us of each function one after the other, and whether outputs were right."""
        for _ in range(ATTRIBUTING):
            times_us, run = self.replays.time_kernels(self.side, seed := draw(), without)
        return dict(times_us), is_wrong is None or not is_wrong(seed, run)

    def _leave_out(
        self,
        own: Sequence[int],
        times_us: Mapping[int, float],
        found: ReplayedKernels,
        draws: Draws,
        is_changed: Check,
    ) -> ReplayedKernels:
        """Others may find less to do without the candidate's kernels: what they then miss of their time is added."""
        self.side.replayer.leave_out(own)
        kept: list[KeptValues] = []

        def replay(seed: int, graph: Graph) -> tuple[float, Run]:
            for values in kept if graph == "without" else ():
                values.move()
            return self.replays.replay_alone(self.side, seed, graph)

        runs = [replay(seed := draws.given(), "without") for _ in range(ATTRIBUTING)]
        is_needed = is_changed(seed, runs[-1][1])
        idle_us, _ = self._time_kernels(draws.given, without=own)
        beside = {at: us for at, us in times_us.items() if at not in own}
        missed_us = sum(max(us - idle_us.get(at, 0.0), 0.0) for at, us in beside.items())
        found = replace(found, others_us=min(time_us for time_us, _ in runs) + missed_us)
        if not is_needed and beside:
            kept += find_kept_values(self.side.recording, replay, draws.given)
            other_seed = draws.given()
            is_needed = bool(kept) and is_changed(other_seed, replay(other_seed, "without")[1])
        if is_needed and any(at != OTHER for at in beside):  # copies and fills compute nothing
            seeds = chain([draws.given()], iter(draws.any, None))
            moved = examine_copies(self.side.recording, lambda *given: replay(*given)[1], seeds, self.source)
            is_needed = moved != "copied"
            found = replace(found, doubts=(*found.doubts, *((MAY_BE_COPIED,) if moved == "unknown" else ())))
        return replace(found, without_custom="changed" if is_needed else "unchanged")
