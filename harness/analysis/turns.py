"""The best of several results of one sample. A gain counts only beyond the measurement error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class TurnResult(NamedTuple):
    """`speedup` None: incorrect, not timed, or not confirmed."""

    is_correct: bool
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None


def find_best(results: Sequence[TurnResult]) -> int | None:
    """The index of the first correct result, or of the last one that beats its predecessors; None without any."""
    best: int | None = None
    for index, result in enumerate(results):
        if result.is_correct and (best is None or beats(result, results[best])):
            best = index
    return best


def beats(new: TurnResult, old: TurnResult) -> bool:
    """Both are correct: the speedup of `new` lies above the interval of `old`, and its lower end above that one's. A
    tie is no gain. Intervals of short calls overlap even at half the time, since their lower ends count what a hostile
    program may hide."""
    if new.speedup is None or old.speedup is None:
        return new.speedup is not None
    is_beyond_error = new.speedup > (old.speedup_high or float("inf"))
    return is_beyond_error and (new.speedup_low or 0.0) > (old.speedup_low or 0.0)
