"""Combines the clocks of several speedups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from harness.domain import INEXACT

_NOTES = {
    "call": "by whole calls of candidate and baseline",
    "bound": "by whole calls: lower bounds (>=)",
    "mixed": "by different clocks in different cases (~)",
}


class Timed(Protocol):
    @property
    def speedup(self) -> float | None: ...
    @property
    def clock(self) -> str | None: ...


def count_clocks(rows: Iterable[Timed]) -> dict[str, int]:
    return dict(Counter(row.clock or "call" for row in rows if row.speedup is not None))


def combine_clocks(clocks: Iterable[str]) -> str | None:
    """Device times and lower bounds give a lower bound. None without clocks."""
    found = set(clocks)
    if len(found) < 2:
        return next(iter(found), None)
    return "bound" if found == {"device", "bound"} else "mixed"


def describe_clocks(counts: Mapping[str, int], table: Mapping[str, int] | None = None) -> str:
    """Return a note such as `3 of 12 timed by whole calls: lower bounds (>=)`; "" if all times of the table are exact
    and by one clock.
    """
    whole = counts if table is None else table
    if len(whole) < 2 and not whole.keys() & set(INEXACT):
        return ""
    total = sum(counts.values())
    parts = [f"{counts[clock]} of {total} timed {note}" for clock, note in _NOTES.items() if counts.get(clock)]
    return "; ".join(parts)
