"""Ratio of the speedups of two groups of evaluations, for `harness diff` and `harness regress`."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Any, Self

STANDARD_ERRORS = 2 * 1.96  # in the width of a 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRatio:
    before: float
    after: float
    ratio: float
    low: float
    high: float
    clock: str | None = None

    @classmethod
    def of_logs(cls, before: float, after: float, below: float, above: float, **more: Any) -> Self:
        """Arguments are logarithms of the speedups, and the reach of the interval below and above their difference."""
        change = after - before
        low, high = exp(change - below), exp(min(change + above, 700.0))
        return cls(before=exp(before), after=exp(after), ratio=exp(change), low=low, high=high, **more)


def find_error(low: float, high: float) -> float:
    return log(high / low) / STANDARD_ERRORS
