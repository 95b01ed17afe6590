"""Finds what only the candidate's kernels write, with the same values in every call: without these kernels the values
of the last call are left in memory, such as weights that each call unpacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harness.evaluation.timing.copied_results import view_words
from harness.sandbox.gpu.recording import Graph, Recording

FLIPPED = 1 | 1 << 32  # bits of a word of eight bytes: indices of four bytes then are one too large or small
SLICE_WORDS = 16 << 20
MOST_BYTES = 1 << 30  # of memory, of which a copy is made
DISTANCE = 5  # in words, to which values are moved


@dataclass(frozen=True, slots=True)
class KeptValues:
    words: Tensor
    at: Tensor
    values: Tensor

    def move(self) -> None:
        """Write the values to each other's places. Those that are all equal stay."""
        self.words[self.at] = self.values.roll(DISTANCE)


def find_kept_values(
    recording: Recording, replay: Callable[[int, Graph], Any], draw: Callable[[], int]
) -> list[KeptValues]:
    """Replay calls with other contents of memory: what a call writes is then as before. Raises NotReplayable."""
    pieces = recording.view_memory()
    if sum(content.numel() for _, content in pieces) > MOST_BYTES:
        return []
    low, high = min(at for at, _ in pieces), max(at + content.numel() for at, content in pieces)
    memory = [part for _, content in pieces for part in _cut(content)]
    before = [part.clone() for part in memory]
    written: dict[Graph, Sequence[Tensor]] = {}
    graphs: tuple[Graph, ...] = ("call", "without")
    for graph in graphs:
        for part, old in zip(memory, before, strict=True):
            part.copy_(_flip(old, low, high))
        replay(draw(), graph)
        written[graph] = [part != _flip(old, low, high) for part, old in zip(memory, before, strict=True)]
    for part, old in zip(memory, before, strict=True):
        part.copy_(old)
    found = []
    for part, old, *is_written in zip(memory, before, written["call"], written["without"], strict=True):
        at = (is_written[0] & ~is_written[1]).nonzero()[:, 0]
        if len(at):
            found.append(KeptValues(part, at, old[at]))
    return found


def _cut(content: Tensor) -> Iterator[Tensor]:
    words = view_words(content, torch.int64)
    for first in range(0, len(words), SLICE_WORDS):
        yield words[first : first + SLICE_WORDS]


def _flip(words: Tensor, low: int, high: int) -> Tensor:
    """Change all words but addresses and zeros: kernels may wait for a zero, and must not follow a false address."""
    is_left = ((words >= low) & (words < high)) | (words == 0)
    return torch.where(is_left, words, words ^ FLIPPED)
