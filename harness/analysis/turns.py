"""Chooses the best of several results of one sample. A gain counts only beyond the measurement error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.domain import Outcome

if TYPE_CHECKING:
    from harness.store.columns import ResultRow


class TurnResult(NamedTuple):
    """`speedup` is None if the result is incorrect or has no confirmed time. `over_rival_low` is the lower end of the
    speedup over the turn `rival` in A/B pairs; None if they showed no gain.
    """

    is_correct: bool
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    turn: int | None = None
    rival: int | None = None
    over_rival_low: float | None = None
    clock: str | None = None

    @property
    def alone(self) -> TurnResult:
        return self._replace(turn=None, rival=None)


def result_of(row: ResultRow) -> TurnResult:
    return TurnResult(
        row.outcome == Outcome.CORRECT,
        row.speedup,
        row.speedup_low,
        row.speedup_high,
        turn=row.turn,
        rival=row.rival_turn,
        over_rival_low=row.over_rival_low,
        clock=row.clock,
    )


def find_best(results: Sequence[TurnResult]) -> int | None:
    """Return the index of the last correct result that beats its predecessors; None without correct results."""
    bests = list_best(results)
    return bests[-1] if bests else None


def list_best(results: Sequence[TurnResult]) -> list[int | None]:
    bests: list[int | None] = []
    best: int | None = None
    for index, result in enumerate(results):
        if result.is_correct and (best is None or beats(result, results[best])):
            best = index
        bests.append(best)
    return bests


def beats(new: TurnResult, old: TurnResult) -> bool:
    """Both results are correct. If A/B pairs with `old` exist, their interval must lie above 1. Otherwise the speedup
    of `new` must lie above the interval of `old`, and its lower end above that one's: intervals of short calls overlap
    even at half the time. A tie is no gain.
    """
    if new.speedup is None or old.speedup is None:
        return new.speedup is not None
    if new.rival is not None and new.rival == old.turn:
        return (new.over_rival_low or 0.0) > 1
    is_beyond_error = new.speedup > (old.speedup_high or float("inf"))
    return is_beyond_error and (new.speedup_low or 0.0) > (old.speedup_low or 0.0)
