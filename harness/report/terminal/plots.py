"""Scatter plots of braille dots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

# Bits of a braille character by column and row of its 2 x 4 dots.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_EMPTY = 0x2800


def plot_samples(
    values: Sequence[float], label: Callable[[float], str], *, width: int = 60, height: int = 6
) -> list[str]:
    """One dot per value, a scale with `label` at the left; neighbours share a column if needed. [] without finite
    values.
    """
    shown = [value for value in values if isfinite(value)]
    if not shown:
        return []
    low, high = min(shown), max(shown)
    cells = [[_EMPTY] * _count_columns(len(shown), width) for _ in range(height)]
    for number, value in enumerate(shown):
        column = number if len(shown) <= 2 * width else number * 2 * width // len(shown)
        row = round((high - value) / (high - low) * (4 * height - 1)) if high > low else 2 * height
        cells[row // 4][column // 2] |= _DOTS[column % 2][row % 4]
    labels = _label_rows(low, high, height, label)
    longest = max(map(len, labels))
    return [f"{text:>{longest}} ┤{''.join(map(chr, line))}" for text, line in zip(labels, cells, strict=True)]


def _count_columns(samples: int, width: int) -> int:
    return min(width, (samples + 1) // 2)


def _label_rows(low: float, high: float, height: int, label: Callable[[float], str]) -> list[str]:
    """The centre value of every second row, and of the last."""
    step = (high - low) / height
    values = [high - (row + 0.5) * step for row in range(height)]
    return [label(value) if row % 2 == 0 or row == height - 1 else "" for row, value in enumerate(values)]
