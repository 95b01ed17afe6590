"""Data in a page: columns with few values as codes, numbers with few digits, everything deflated and in base64.

A page of 10,000 candidates is then a few megabytes that the browser unpacks piece by piece. Base64 also holds no `<`:
no text of a candidate can end the element it lies in.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from harness.report.escaping import make_printable

DIGITS = 5


def pack(document: Any) -> str:
    """JSON, deflated, as base64. What JSON cannot hold must be gone: see `clean`."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    compressor = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = text.encode("utf-8", "replace")
    return b64encode(compressor.compress(data) + compressor.flush()).decode("ascii")


def clean(value: Any) -> Any:
    """The same with texts whose control characters are visible, and with numbers of few digits. Those that are
    infinite or no numbers become texts: an error that is not a number is just what a reader looks for."""
    if isinstance(value, str):
        return make_printable(value)
    if isinstance(value, float):
        return shorten_number(value) if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: clean(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [clean(entry) for entry in value]
    return value


def shorten_number(value: float, digits: int = DIGITS) -> float | int:
    """A finite number with so many significant digits."""
    short = float(f"{value:.{digits}g}")  # faster than to round at a place found by a logarithm
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def encode_texts(values: Sequence[str | None]) -> dict[str, Any]:
    """A column of texts as codes into the list of those that occur; None has the code -1."""
    codes: dict[str, int] = {}
    encoded = [-1 if value is None else codes.setdefault(value, len(codes)) for value in values]
    return {"texts": [make_printable(text) for text in codes], "codes": encoded}


def encode_numbers(values: Iterable[float | None], digits: int = DIGITS) -> list[float | int | None]:
    """A column of numbers; what is infinite or no number is missing."""
    return [
        None
        if value is None or not isfinite(value)
        else value
        if isinstance(value, int)
        else shorten_number(value, digits)
        for value in values
    ]


def cut_text(text: str, most: int) -> str:
    """The text, or its beginning and its end with a word about what is missing between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n\n[... {len(text) - 2 * half:,} characters are left out here ...]\n\n{text[-half:]}"
