"""Confidence intervals for the median of paired ratios, and ratios of two speedups."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, Self

RESAMPLES = 2000
_NORMAL_95 = statistics.NormalDist().inv_cdf(0.975)


def bootstrap_ratio_interval(
    baseline_us: Sequence[float],
    candidate_us: Sequence[float],
    *,
    confidence: float = 0.95,
    seed: int,
    resamples: int = RESAMPLES,
) -> tuple[float, float, float]:
    """Return (median, low, high) of baseline / candidate by a percentile bootstrap over pairs, deterministic per seed.
    Below about six pairs the interval is the range. Raises ValueError for invalid pairs or confidence.
    """
    import numpy as np

    baseline, candidate = np.asarray(baseline_us, dtype=float), np.asarray(candidate_us, dtype=float)
    _check_pairs(baseline.shape, candidate.shape, confidence)
    times = np.concatenate([baseline, candidate])
    if not (np.isfinite(times).all() and (times > 0).all()):
        raise ValueError("times must be positive and finite")
    ratios = baseline / candidate
    median = float(np.median(ratios))
    picks = np.random.default_rng(seed).integers(0, ratios.size, size=(resamples, ratios.size))
    medians = np.median(ratios[picks], axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return median, min(float(low), median), max(float(high), median)


def ranked_ratio_interval(baseline_us: Sequence[float], candidate_us: Sequence[float]) -> tuple[float, float, float]:
    """Return the 95 % interval from the median's rank (binomial, by normal approximation), 100 times faster."""
    ratios = sorted(mine / theirs for mine, theirs in zip(baseline_us, candidate_us, strict=True))
    count = len(ratios)
    below = max(math.floor(count / 2 - _NORMAL_95 * math.sqrt(count) / 2), 0)
    return statistics.median(ratios), ratios[below], ratios[count - 1 - below]


def bound_share(share: float, count: int, deviations: float = _NORMAL_95) -> tuple[float, float]:
    """Return Wilson's score interval, conservative for fractional counts. Raises ValueError for no observation."""
    if count < 1:
        raise ValueError("an interval needs at least one problem")
    weight = deviations**2 / count
    middle = (share + weight / 2) / (1 + weight)
    half = math.sqrt(share * (1 - share) * weight + weight**2 / 4) / (1 + weight)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def _check_pairs(baseline: tuple[int, ...], candidate: tuple[int, ...], confidence: float) -> None:
    if baseline != candidate or len(baseline) != 1:
        raise ValueError(f"times come in pairs: got baseline of shape {baseline}, candidate of shape {candidate}")
    if baseline[0] == 0:
        raise ValueError("an interval needs at least one pair of times")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")


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
