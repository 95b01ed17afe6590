"""Times each kernel of a replayed call, and tells what a replay without the candidate's kernels gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from harness.domain import WithoutCustom
from harness.evaluation.integrity.attribution import OwnedFunction
from harness.evaluation.results import Owner, ReplayedKernels
from harness.evaluation.timing.cold_replays import ColdReplays, Side
from harness.sandbox.gpu.recording import Graph, NotReplayable, Recording
from harness.sandbox.model_session import Run

NAMED = 60  # characters of a name in a finding
OTHER_WORK, ATTRIBUTING = "Memcpy, Memset", 2  # a name; replays of a graph, the first of which may load code


Check = Callable[[int, Run], bool]  # of a replay with the inputs of a seed; outputs are valid until the next replay


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelExaminer:
    """`functions` are those of the side's recording."""

    replays: ColdReplays
    side: Side
    functions: Sequence[OwnedFunction]
    source: random.Random

    def examine_recorded_call(self, draw: Callable[[], int], is_wrong: Check) -> ReplayedKernels | None:
        """Attribute work that is right for new inputs, or else for those of the recording. None for neither."""
        for draw_seed, is_general in ((draw, True), (partial(int, self.side.recording.seed), False)):
            times_us = [self._replay_right(draw_seed(), is_wrong) for _ in range(ATTRIBUTING)]
            if None not in times_us:
                return replace(self.examine(draw_seed, is_wrong), measured_us=times_us[-1], is_general=is_general)
        return None

    def _replay_right(self, seed: int, is_wrong: Check) -> float | None:
        """Return the time in us, or None for wrong outputs."""
        time_us, run = self.replays.replay_alone(self.side, seed)
        return None if is_wrong(seed, run) else time_us

    def examine(self, draw: Callable[[], int], is_changed: Check) -> ReplayedKernels:
        """Time each kernel, and leave out the candidate's own ones, without which others may fail or wait for ever. All
        replays are like timed ones: cold, and apart from each other.
        """
        own = [at for at, one in enumerate(self.functions) if one.owner == "custom"]
        rows: list[tuple[str, Owner, float]] = []
        replay = partial(self.replays.replay_alone, self.side)
        without_custom: WithoutCustom = "not_tried"
        others_us: float | None = None
        try:
            *_, times = [self.replays.time_kernels(self.side, draw()) for _ in range(ATTRIBUTING)]
            rows = [(*self.functions[at][:2], us) if at >= 0 else (OTHER_WORK, "torch", us) for at, us in times]
            if own:
                self.side.replayer.leave_out(own)
                found = [replay(seed := draw(), "without") for _ in range(ATTRIBUTING)]
                others_us = min(time_us for time_us, _ in found)
                is_copy = partial(is_copied, self.side.recording, replay, draw, self.source)
                without_custom = "changed" if is_changed(seed, found[-1][1]) and not is_copy() else "unchanged"
        except (NotReplayable, IndexError):
            self.side.replayer.end()
            without_custom = "failed"
        unverified = dict.fromkeys(self.functions[at].name[:NAMED] for at in own if not self.functions[at].is_verified)
        return ReplayedKernels(
            rows=tuple(rows), without_custom=without_custom, others_us=others_us, unverified=tuple(unverified)
        )


WINDOWS, WORDS = 6, 16  # of an output, each of so many words of four bytes
FEWEST = 12  # different words of a window: others may be in memory by chance
MOST_HITS = 4096
SLICE_WORDS = 64 << 20  # of memory that is searched at once
Replay = Callable[[int, Graph], object]
Pattern = tuple[list[int], list[int]]  # places of words, from the first one, and the words


def is_copied(recording: Recording, replay: Replay, draw: Callable[[], int], source: random.Random) -> bool:
    """Return True if the result is in memory without the candidate's kernels, for the inputs that it belongs to."""
    seed = draw()
    replay(seed, "call")
    patterns = take_patterns(recording.view_outputs(), source)
    replay(draw(), "without")
    is_known = hold_all(recording.view_own_memory(), patterns)
    replay(seed, "without")
    return not is_known and hold_all(recording.view_own_memory(), patterns)


def take_patterns(outputs: Sequence[Tensor], source: random.Random) -> list[Pattern]:
    """`outputs` are bytes. Outputs of few words, or of few different ones, are left out."""
    found = (_take_pattern(_as_words(output), source) for output in outputs)
    return [pattern for pattern in found if pattern is not None]


def _take_pattern(words: Tensor, source: random.Random) -> Pattern | None:
    if words.numel() < 2 * WORDS:
        return None
    starts = sorted(source.randrange(words.numel() - WORDS) for _ in range(WINDOWS))
    windows = [words[start : start + WORDS].tolist() for start in starts]
    if any(len(set(window)) < FEWEST for window in windows):
        return None
    places = [start - starts[0] + at for start in starts for at in range(WORDS)]
    return places, [word for window in windows for word in window]


def hold_all(memory: Sequence[Tensor], patterns: Sequence[Pattern]) -> bool:
    """Return True if each lies somewhere in `memory`, which are pieces of bytes."""
    return bool(patterns) and all(any(_holds(_as_words(one), pattern) for one in memory) for pattern in patterns)


def _holds(words: Tensor, pattern: Pattern) -> bool:
    places, wanted = (torch.tensor(part, device=words.device) for part in pattern)
    last = words.numel() - int(places[-1])
    for first in range(0, max(last, 0), SLICE_WORDS):
        part = words[first : min(first + SLICE_WORDS, last)]
        hits = (part == wanted[0]).nonzero()[:MOST_HITS, 0] + first
        if bool((words[hits[:, None] + places] == wanted).all(1).any()):
            return True
    return False


def _as_words(memory: Tensor) -> Tensor:
    return memory[: memory.numel() // 4 * 4].view(torch.int32)
