"""Rounds half away from zero, as JavaScript's `toFixed` on the page does."""

from decimal import ROUND_HALF_UP, Decimal
from math import isfinite


def format_fixed(value: float, digits: int) -> str:
    if not isfinite(value):
        return str(value)
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def format_rate(share: float | None, digits: int = 1) -> str:
    """A share in 0..1 as a percentage."""
    return "-" if share is None else f"{format_fixed(100 * share, digits)}%"
