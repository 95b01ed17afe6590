"""Explains why filters match no stored evaluation."""

from __future__ import annotations

from fnmatch import fnmatchcase

from harness.domain.suggestions import suggest
from harness.store.filters import list_compared
from harness.store.queries import COLUMN_KINDS, ResultFilter
from harness.store.results import ResultStore


def explain_no_match(store: ResultStore, where: ResultFilter) -> str:
    if not store.count():
        return f"no evaluations in {store.path.parent} yet: `harness run --suite core --model MODEL` makes some"
    texts = ("run", "model", "problem", "suite", "workload", "device", "outcome")
    wanted = [(name, value) for name in texts if (value := getattr(where, name)) is not None]
    if where.condition is not None:
        wanted += list_compared(where.condition, COLUMN_KINDS)
    for column, value in wanted:
        known = sorted({str(one) for (one,) in store.values((column,)) if one is not None})
        if not any(fnmatchcase(one, value) for one in known):
            return f"no {column} {value!r} in {store.path}; {suggest(value, known)}"
    return f"no evaluation in {store.path} matches all filters; remove one, or list all with `harness results`"
