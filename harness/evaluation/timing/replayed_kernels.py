"""Tells whether the candidate's kernels only copy a result that other kernels of a call leave in memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from harness.sandbox.gpu.recording import Graph, Recording

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
