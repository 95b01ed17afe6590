"""What a set of judged samples says about a model: correctness, fast_p, pass@k, the mean speedup.

Pure functions of counts. A problem is given as its `Draws`: what became of each sample drawn for it. What each
function leaves out of its denominator:

- A sample that ended as `harness_error` or `not_run` is no verdict on the model. It is never counted as correct, and
  it leaves the denominator: a problem with other samples is scored on those, one with no other leaves the group.
- A problem that was asked for but has no sample at all counts as not solved.
- A correct sample without a confirmed time counts for fast_0 and for no other fast_p.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from harness.domain import Outcome, UsageError

FAST_THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
NO_VERDICT = tuple(outcome for outcome in Outcome if not outcome.counts_against_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """The samples of one problem: how each ended, and the confirmed speedups of those that are correct."""

    problem: str
    outcomes: tuple[Outcome, ...]
    speedups: tuple[float, ...] = ()

    @property
    def judged(self) -> int:
        """How many samples say something about the model."""
        return len(self.outcomes) - sum(map(self.outcomes.count, NO_VERDICT))

    @property
    def scored(self) -> bool:
        """Whether the problem is in the denominator."""
        return self.judged > 0 or not self.outcomes

    def successes(self, threshold: float) -> int:
        """How many samples are correct and faster than `threshold` (strictly); at 0 the correct ones."""
        if threshold <= 0.0:
            return self.outcomes.count(Outcome.CORRECT)
        return sum(speedup > threshold for speedup in self.speedups)


def count_outcomes(problems: Iterable[Draws]) -> tuple[tuple[Outcome, int], ...]:
    """How many samples ended in each way, in the order of `Outcome`; ways that did not occur are left out."""
    counts = Counter(outcome for draws in problems for outcome in draws.outcomes)
    return tuple((outcome, counts[outcome]) for outcome in Outcome if counts[outcome])


def estimate_fast(problems: Iterable[Draws], threshold: float) -> float | None:
    """fast_p: the share of problems solved faster than `threshold`, as expected of a single draw (the mean over
    problems of the share of their samples). None when no problem is scored."""
    return _mean([_share(draws, threshold) for draws in problems if draws.scored])


def estimate_fast_at_k(problems: Iterable[Draws], threshold: float, k: int) -> float | None:
    """fast_p@k: the expected share of problems that the best of k draws solves faster than `threshold`, by the unbiased
    estimator 1 - C(n-c, k) / C(n, k) over the n judged samples of each problem, c of them successes.

    At threshold 0 this is pass@k. None when no problem is scored. Raises UsageError if a problem has fewer than k
    judged samples (a problem without any sample counts as not solved).
    """
    shares = []
    for draws in problems:
        if draws.judged:
            _check_enough(draws, k)
            shares.append(estimate_at_k(draws.judged, draws.successes(threshold), k))
        elif draws.scored:
            shares.append(0.0)
    return _mean(shares)


def estimate_at_k(samples: int, successes: int, k: int) -> float:
    """1 - C(n-c, k) / C(n, k), the chance that k of n samples, c of them successes, hold at least one success.

    A product of at most c factors instead of factorials: no large numbers and nothing cancelled.
    Raises UsageError for k outside 1..n.
    """
    if not 1 <= k <= samples:
        raise UsageError(f"k must lie between 1 and the number of samples, {samples}; got {k}")
    if samples - successes < k:
        return 1.0
    missed = 1.0
    for drawn in range(successes):
        missed *= (samples - k - drawn) / (samples - drawn)
    return 1.0 - missed


def geometric_mean(speedups: Sequence[float]) -> float | None:
    """The mean that treats 2x and 0.5x as cancelling; None for no speedups."""
    return exp(fsum(log(speedup) for speedup in speedups) / len(speedups)) if speedups else None


def _share(draws: Draws, threshold: float) -> float:
    return draws.successes(threshold) / draws.judged if draws.judged else 0.0


def _mean(values: list[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _check_enough(draws: Draws, k: int) -> None:
    if draws.judged < k:
        raise UsageError(
            f"@{k} needs at least {k} judged samples of every problem; {draws.problem} has {draws.judged}: "
            f"choose a smaller k, or generate and evaluate more samples"
        )
