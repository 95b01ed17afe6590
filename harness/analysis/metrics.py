"""Metrics over samples: correctness, fast_p (also as a curve), pass@k, geometric mean speedup.

`problem_error`, `harness_error` and `not_run` samples leave the denominator. A problem without samples counts as
unsolved; a correct sample without a confirmed time counts for fast_0 only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import comb, exp, fsum, log

from harness.analysis.intervals import bound_share
from harness.domain import INEXACT, Outcome, UsageError
from harness.store.columns import ResultRow

_NOTES = {
    "call": "by whole calls of candidate and baseline",
    "bound": "by whole calls: lower bounds (>=)",
    "mixed": "by different clocks in different cases (~)",
}


def count_clocks(rows: Iterable[ResultRow]) -> dict[str, int]:
    return dict(Counter(row.clock or "call" for row in rows if row.speedup is not None))


def combine_clocks(clocks: Iterable[str]) -> str | None:
    """Device times and lower bounds give a lower bound. None without clocks."""
    found = set(clocks)
    if len(found) < 2:
        return next(iter(found), None)
    return "bound" if found == {"device", "bound"} else "mixed"


def describe_clocks(counts: Mapping[str, int], table: Mapping[str, int] | None = None) -> str:
    """Return a note such as `3 of 12 timed by whole calls: lower bounds (>=)`; "" if all are exact and by one clock."""
    whole = counts if table is None else table
    if len(whole) < 2 and not whole.keys() & set(INEXACT):
        return ""
    total = sum(counts.values())
    parts = [f"{counts[clock]} of {total} timed {note}" for clock, note in _NOTES.items() if counts.get(clock)]
    return "; ".join(parts)


FAST_THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
NO_VERDICT = tuple(outcome for outcome in Outcome if not outcome.counts_against_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """The samples of one problem. `repeats` counts evaluated samples that are not listed, since an equal program is."""

    problem: str
    outcomes: tuple[Outcome, ...]
    speedups: tuple[float, ...] = ()
    repeats: int = 0

    @property
    def evaluated(self) -> int:
        return len(self.outcomes) - sum(map(self.outcomes.count, NO_VERDICT))

    @property
    def scored(self) -> bool:
        return self.evaluated > 0 or not self.outcomes

    def successes(self, threshold: float) -> int:
        """Count correct samples strictly faster than `threshold`; at 0 all correct ones."""
        if threshold <= 0.0:
            return self.outcomes.count(Outcome.CORRECT)
        return sum(speedup > threshold for speedup in self.speedups)


def count_outcomes(problems: Iterable[Draws]) -> tuple[tuple[Outcome, int], ...]:
    counts = Counter(outcome for draws in problems for outcome in draws.outcomes)
    return tuple((outcome, counts[outcome]) for outcome in Outcome if counts[outcome])


def count_once(samples: Iterable[Draws], distinct: Iterable[Draws]) -> list[Draws]:
    pairs = zip(samples, distinct, strict=True)
    return [replace(once, repeats=each.evaluated - once.evaluated) for each, once in pairs]


def estimate_fast(problems: Iterable[Draws], threshold: float) -> float | None:
    """Return fast_p of one draw: the mean over problems of their share of samples. None without scored problems."""
    return _mean([_share(draws, threshold) for draws in problems if draws.scored])


def estimate_fast_at_k(problems: Iterable[Draws], threshold: float, k: int) -> float | None:
    """Return the expected share of problems whose best of k draws is faster than `threshold` (0: pass@k).

    Unbiased: 1 - C(n-c, k) / C(n, k) for c successes in n draws; with fewer than k draws after `count_once`, k is
    their number. None without scored problems. Raises UsageError for a problem with fewer than k samples.
    """
    shares = []
    for draws in problems:
        if draws.evaluated:
            _check_enough(draws, k)
            shares.append(estimate_at_k(draws.evaluated, draws.successes(threshold), min(k, draws.evaluated)))
        elif draws.scored:
            shares.append(0.0)
    return _mean(shares)


def estimate_at_k(samples: int, successes: int, k: int) -> float:
    """Compute 1 - C(n-c, k) / C(n, k). Raises UsageError for k outside 1..n."""
    if not 1 <= k <= samples:
        raise UsageError(f"k must lie between 1 and the number of samples, {samples}; got {k}")
    return 1.0 - comb(samples - successes, k) / comb(samples, k)


def geometric_mean(speedups: Sequence[float]) -> float | None:
    return exp(fsum(log(speedup) for speedup in speedups) / len(speedups)) if speedups else None


def _share(draws: Draws, threshold: float) -> float:
    return draws.successes(threshold) / draws.evaluated if draws.evaluated else 0.0


def _mean(values: list[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _check_enough(draws: Draws, k: int) -> None:
    evaluated = draws.evaluated + draws.repeats
    if evaluated < k:
        raise UsageError(
            f"@{k} needs at least {k} evaluated samples of every problem; {draws.problem} has {evaluated}: "
            f"choose a smaller k, or generate and evaluate more samples"
        )


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
    import numpy as np

    problems, limits = [one for one in draws if one.scored], np.asarray(thresholds)
    total = np.zeros(len(limits))
    for one in problems:
        faster = len(one.speedups) - np.searchsorted(np.sort(one.speedups), limits, side="right")
        total += np.where(limits <= 0.0, one.outcomes.count(Outcome.CORRECT), faster) / max(one.evaluated, 1)
    points = []
    for threshold, share in zip(thresholds, total / max(len(problems), 1), strict=True) if problems else ():
        low, high = bound_share(min(float(share), 1.0), len(problems))
        points.append(CurvePoint(threshold=threshold, share=float(share), low=low, high=high))
    return tuple(points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens, for models matching a pattern with `*` and `?`."""

    model: str
    prompt_usd: float
    completion_usd: float

    def compute_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (self.prompt_usd * prompt_tokens + self.completion_usd * completion_tokens) / 1e6


def find_price(prices: Iterable[Price], model: str) -> Price | None:
    return next((price for price in prices if fnmatchcase(model, price.model)), None)


def parse_prices(texts: list[str] | None) -> tuple[Price, ...]:
    """Raises UsageError."""
    return tuple(map(_parse_price, texts or ()))


def _parse_price(text: str) -> Price:
    model, _, amounts = text.rpartition("=")
    try:
        prompt_usd, completion_usd = map(float, amounts.split("/"))
        if not (model and 0 <= prompt_usd < float("inf") and 0 <= completion_usd < float("inf")):
            raise ValueError(text)
    except ValueError as error:
        raise UsageError(f"--price {text!r}: expected MODEL=IN/OUT in dollars, like 'gpt-5*=1.25/10'") from error
    return Price(model=model, prompt_usd=prompt_usd, completion_usd=completion_usd)
