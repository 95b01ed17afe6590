"""fast_p as a function of p, with confidence intervals."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from harness.analysis.metrics import Draws
from harness.domain import Outcome

Z_95 = 1.959964  # two-sided normal quantile
STEPS_PER_DOUBLING = 8
CURVE_THRESHOLDS = tuple(2.0 ** (step / STEPS_PER_DOUBLING) for step in range(-24, 41))  # 1/8 to 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    threshold: float
    share: float
    low: float
    high: float


def trace_fast_curve(
    draws: Iterable[Draws], thresholds: Sequence[float] = (0.0, *CURVE_THRESHOLDS)
) -> tuple[CurvePoint, ...]:
    """Return () without scored problems. The value at 0 is the correctness rate."""
    problems = [_ShareOfProblem(one) for one in draws if one.scored]
    if not problems:
        return ()
    return tuple(_trace_point(problems, threshold) for threshold in thresholds)


def bound_share(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % score interval. It is conservative if problems count fractionally. Raises ValueError for no
    problem.
    """
    if count < 1:
        raise ValueError("an interval needs at least one problem")
    weight = Z_95**2 / count
    middle = (share + weight / 2) / (1 + weight)
    half = Z_95 * sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


class _ShareOfProblem:
    __slots__ = ("correct", "evaluated", "speedups")

    def __init__(self, draws: Draws) -> None:
        self.evaluated = draws.evaluated
        self.correct = draws.outcomes.count(Outcome.CORRECT)
        self.speedups = sorted(draws.speedups)

    def find_share(self, threshold: float) -> float:
        if not self.evaluated:
            return 0.0
        faster = len(self.speedups) - bisect_right(self.speedups, threshold)
        return (self.correct if threshold <= 0.0 else faster) / self.evaluated


def _trace_point(problems: Sequence[_ShareOfProblem], threshold: float) -> CurvePoint:
    share = fsum(problem.find_share(threshold) for problem in problems) / len(problems)
    low, high = bound_share(min(share, 1.0), len(problems))
    return CurvePoint(threshold=threshold, share=share, low=low, high=high)
