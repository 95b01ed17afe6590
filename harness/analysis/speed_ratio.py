"""How the speedup of two groups of evaluations differs, for `harness diff` and `harness regress`."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Any, Self

STANDARD_ERRORS = 2 * 1.96  # in the width of a 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRatio:
    """After / before, with its interval."""

    before: float
    after: float
    ratio: float
    low: float
    high: float
    clock: str | None = None

    @classmethod
    def of_logs(cls, before: float, after: float, below: float, above: float, **more: Any) -> Self:
        """From logarithms of the speedups, and how far the interval reaches below and above their difference."""
        change = after - before
        low, high = exp(change - below), exp(min(change + above, 700.0))
        return cls(before=exp(before), after=exp(after), ratio=exp(change), low=low, high=high, **more)


def find_error(low: float, high: float) -> float:
    """The standard error of a logarithm of which this is the 95 % interval."""
    return log(high / low) / STANDARD_ERRORS
