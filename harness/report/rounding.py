"""One rule of rounding for terminal and page: what lies in the middle is rounded away from zero, as `toFixed` does."""

from decimal import ROUND_HALF_UP, Decimal
from math import isfinite


def format_fixed(value: float, digits: int) -> str:
    """The number with so many digits after the point."""
    if not isfinite(value):
        return str(value)
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def format_rate(share: float | None, digits: int = 1) -> str:
    """A share in 0..1 as a percentage."""
    return "-" if share is None else f"{format_fixed(100 * share, digits)}%"
