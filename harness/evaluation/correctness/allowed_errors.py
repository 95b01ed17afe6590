"""What an output may be off by: the rule and its constants.

With T the float64 truth, R the reference in its own dtype and C the candidate, every element must satisfy

    |C - T| <= max(factor * E, atol + rtol * M)

M, the local magnitude: the larger of |T| and the squared mean of the roots of |T| of `BLOCK` neighbours, since sums
that cancel have errors of the size of their terms, but few large neighbours are other sums; at least a small share of
the output's mean |T|, for regions of zeros. Values that a mask fills in (`fill_values`) count as zero in these means. M
also covers conditioning where it is known (`TruthLeaf.spread`): the change of T by one rounding of inputs and weights,
divided by that rounding; and the change of R by roundings of all intermediate results, as far as it exceeds `CHAIN`
times the root of the number of operators. Gradients cancel where outputs do not: those of a softmax with one large
value are differences of equal terms, exactly zero in one form of the same work only. Of single elements in 16 bits this
change counts `FURTHER_ROUNDINGS` times, since programs round other results; whole outputs hardly differ by that, and
products in 8 bits would be as close (`TruthLeaf.element_spread`).

E: the smaller of two bounds of R's error, its largest error and its largest error relative to M, so that no single
element of R sets the limit.

`atol` and `rtol` (`FLOORS`) are several times below one rounding to the next smaller dtype. For inputs of usual sizes
(`has_usual_sizes`) and known operators (`Terms`) they are lower, and whole outputs are rated, too: each error may be
small, and all of them too much.
Of a whole output, errors relative to M have two parts: a bias, which all elements share (as values that are all too
large by the same share, or by the same amount), and a scatter, the root mean square of the rest. Sums in the worst
order scatter with the square root of their length. Tensor cores truncate: a bias that grows with the length, or scatter
where terms cancel; there, factors in three narrower parts scatter, too. Hardware approximates some functions.

Exceptions:

- Integers, booleans, floats of 8 bits and counts (`is_countable`) are exact. Unless inputs themselves are ordered, the
  first three may be what the same moves make of them: a rounding decides between whole steps, or which of two results
  is larger. Of 8-bit floats `FEW_WRONG` may also be one step away. Where T in the output's dtype is infinite or NaN, C
  must be the same; other NaNs fail.
- Where R equals T though its values have many digits (sort, top-k, gather), programs are as exact, and the floor is a
  few roundings of each value itself (`COPIED_EPS`).
- Values may span orders of magnitude: an element is lost if C misses T by more than half where R is close, and the
  floor of what conditioning adds to M does not explain it; more than `LOST_SHARE` lost elements fail. (Sums that cancel
  lose a few.) Of given inputs of a reference without sums, `LOST_BY_FUNCTIONS` may be lost, where functions lose digits
  beside 1. Programs for references without products and such functions lose `LOST_BY_CHANCE`, and those that are small
  only near these inputs (`TruthLeaf.reach`): their error is below the floor of what T changes if inputs and weights
  move by `NEARBY`, divided by it. So is a difference of large values that nearly cancel, but not a small value that
  comes from small ones.
- A logarithm of a sum near 1 has the roundings of the sum, and a sigmoid by a tanh those of a half, times its factor:
  where the reference takes logarithms or such functions, elements are not lost by less than `LOGARITHM_EPS` or
  `FUNCTION_EPS`, if values are as large.
- `by_peak`, for inputs that are nearly all zero: M is at least the largest |T|, and no element is lost, since programs
  with other sums (Strassen, FFT), or with products of 16-bit terms, have errors of that size everywhere.
- Where inputs may make most terms of a sum nearly equal (`Terms.are_alike`), their roundings do not cancel: n of them
  lose up to n/4 eps, of which `EQUAL_TERMS` is allowed.
- Rounding errors of 16-bit terms are random, so that of millions of elements a few exceed any limit near their usual
  size. With 16-bit outputs or a stated tolerance, `OUTLIER_SHARE` of the elements may be off by up to `OUTLIER_LIMIT`
  times the allowed error.
- With `matched` below 1, the other share of each output's elements may be wrong, but not infinite or NaN.

`benchmarks/tolerance.py` prints the distributions of errors that these constants follow from; docs/correctness.md has
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.domain import Tolerance
from harness.problems.operators import Terms

BLOCK = 1024
LEAF_MEAN_SHARE = 1 / 1024
LOST_SHARE, LOST_BY_FUNCTIONS, LOST_BY_CHANCE = 0.05, 1e-3, 2e-4
OUTLIER_SHARE, OUTLIER_LIMIT = 1e-4, 2.0
COPIED_EPS = 8
LOGARITHM_EPS, FUNCTION_EPS = 4, 16
EQUAL_TERMS = 2e-3
# Conditioning is looked for, with given inputs, where errors are at most so many times the allowed one, or where so few
# elements are wrong, as by values that are rounded to whole numbers.
SLIGHT, FEW_WRONG = 100.0, 1e-3
CHAIN, FURTHER_ROUNDINGS = 2.0, 12.0
# Of intermediate results. Opposite moves by several roundings seldom cancel.
WITHIN_SEEDS, WITHIN_ROUNDINGS = (5, 6, 7, 8), 5
# Of inputs and weights, for conditioning: seed, roundings, least share. Factors in three narrower parts have the digits
# that the last one leaves; a logarithm that is added to a maximum errs as if all values had moved alike (no seed). Of
# opposite moves one makes two values more alike, and one moves a value beyond a step that is near.
NEARBY = 1 / 4
MOVES = (
    *((0, 1, 0.0), (1, 1, 0.0), (2, 64, 0.0), (-2, 64, 0.0), (None, 1, 0.0)),
    *((seed, 1, NEARBY) for seed in (3, -3, 4, -4)),
)
# Draws for what still seems wrong: of two values whose moves cancel, as in a difference, each halves those that stay
# unknown.
FURTHER_MOVES = tuple((seed, 64, 0.0) for seed in range(9, 14))


@dataclass(frozen=True, slots=True)
class Floor:
    """`atol + rtol * magnitude` is always allowed."""

    atol: float
    rtol: float


FLOORS = {
    torch.float64: Floor(2.3e-308, 1e-11),
    torch.float32: Floor(1.2e-38, 1e-4),
    torch.float16: Floor(1.2e-7, 2e-3),
    torch.bfloat16: Floor(1.2e-38, 1.6e-2),
}

# Whole outputs, in units of float32's eps: an operator, with fast division and the last digits of its inputs; a
# function that hardware approximates; one term of a sum, whose errors are random; products of factors in several
# narrower parts; one product in truncated sums.
OPERATOR, FUNCTION, ADDED, IN_PARTS, TRUNCATED = 5.0, 60.0, 0.3, 60.0, 0.06
OPERATOR_16_BITS = 0.5  # in units of the dtype's
OWN_FACTOR = 3.0  # times the reference's own bias and scatter
LARGEST = 16.0  # times the scatter, of a single element
DEVIATIONS = 3.0
EPS = torch.finfo(torch.float32).eps
RATED = (torch.float32, torch.float16, torch.bfloat16)


def find_floor(dtype: torch.dtype, terms: Terms | None) -> Floor:
    floor = FLOORS.get(dtype) or Floor(torch.finfo(dtype).tiny, 4 * torch.finfo(dtype).eps)
    if terms is not None and terms.are_alike:
        return Floor(floor.atol, max(floor.rtol, min(terms.added * torch.finfo(dtype).eps / 4, EQUAL_TERMS)))
    if terms is None or not terms.are_usual or dtype is not torch.float32:
        return floor
    random, systematic = explain_errors(dtype, terms)
    return Floor(floor.atol, min(floor.rtol, LARGEST * (random + systematic)))


def count_lost(elements: int, terms: Terms | None) -> float:
    """Return how many elements may be lost."""
    is_usual = terms is not None and terms.are_usual and not terms.has_sums
    return elements * (LOST_BY_FUNCTIONS if is_usual else LOST_SHARE)


def count_lost_by_chance(elements: int) -> float:
    expected = elements * LOST_BY_CHANCE
    return expected + DEVIATIONS * math.sqrt(expected)


def count_roundings(terms: Terms) -> tuple[int, float]:
    """Return by how many roundings of values near them elements may err without being lost, and the largest such
    values: what follows a function may be a factor.
    """
    return (FUNCTION_EPS, math.inf) if terms.functions else (LOGARITHM_EPS if terms.logarithms else 0, 1.0)


def explain_errors(dtype: torch.dtype, terms: Terms) -> tuple[float, float]:
    """Return the random and the systematic error that the dtype's arithmetic explains."""
    rounding = OPERATOR_16_BITS * torch.finfo(dtype).eps
    if dtype.itemsize > 2:
        rounding = EPS * math.hypot(
            OPERATOR * math.sqrt(max(terms.operators, 1)), FUNCTION * math.sqrt(terms.approximated)
        )
    systematic = (IN_PARTS * (terms.multiplied > 0) + TRUNCATED * terms.truncated) * EPS
    return rounding + ADDED * EPS * math.sqrt(terms.added), systematic


def multiply_rows(*rows: Tensor) -> Tensor:
    stacked = torch.stack([row.reshape(-1) for row in rows])
    return stacked @ stacked.T


def rate_whole(
    products: Sequence[Sequence[float]], elements: int, dtype: torch.dtype, terms: Terms, tolerance: Tolerance
) -> float:
    """Return error / allowed error. `products` are the inner products with each other of the candidate's errors, the
    reference's errors, the values (all relative to their magnitude), and ones.
    """
    values, ones = products[2], products[3]
    (bias, scatter), (own_bias, own_scatter) = (_separate(products[at], at, values, elements) for at in range(2))
    varied = math.sqrt(max(1.0 - ones[2] ** 2 / (elements * values[2]), 0.0)) if values[2] > 0 else 1.0
    random, systematic = explain_errors(dtype, terms)
    few = DEVIATIONS / math.sqrt(elements)
    most_scatter = max(OWN_FACTOR * own_scatter, (random + varied * systematic) * (1 + few))
    most_bias = max(OWN_FACTOR * own_bias, random + systematic + few * most_scatter)
    return max(scatter / most_scatter, bias / most_bias) * Tolerance().factor / tolerance.factor


def _separate(errors: Sequence[float], at: int, values: Sequence[float], elements: int) -> tuple[float, float]:
    """Return bias and scatter."""
    gain = errors[2] / values[2] if values[2] > 0 else 0.0
    scatter = math.sqrt(max(errors[at] - gain * errors[2], 0.0) / elements)
    return max(abs(gain) * math.sqrt(values[2] / elements), abs(errors[3]) / elements), scatter
