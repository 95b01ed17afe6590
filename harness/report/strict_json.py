"""JSON without infinities and NaN."""

from __future__ import annotations

from math import isfinite
from typing import Any


def make_strict(value: Any, *, as_strings: bool = False) -> Any:
    """Replaces non-finite floats by None, or by "inf", "-inf" and "nan" with `as_strings`."""
    if isinstance(value, dict):
        return {key: make_strict(entry, as_strings=as_strings) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [make_strict(entry, as_strings=as_strings) for entry in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value) if as_strings else None
    return value
