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
    """Both are correct: the interval of `new` lies above that of `old`. A tie is no gain."""
    if new.speedup is None or old.speedup is None:
        return new.speedup is not None
    return (new.speedup_low or 0.0) > (old.speedup_high or float("inf"))
