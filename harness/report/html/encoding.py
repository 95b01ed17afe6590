"""Encodes data compactly for the page: dictionaries, shortened numbers, deflate, base64 (contains no `<`)."""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from harness.report.values import make_printable

DIGITS = 5


def pack(document: Any) -> str:
    """Return deflated JSON as base64; the document must be finite, see `clean`."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    compressor = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = text.encode("utf-8", "replace")
    return b64encode(compressor.compress(data) + compressor.flush()).decode("ascii")


def clean(value: Any) -> Any:
    """Escape control characters, shorten numbers, and write non-finite ones as strings."""
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
    short = float(f"{value:.{digits}g}")  # faster than rounding by logarithm
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def encode_texts(values: Sequence[str | None]) -> dict[str, Any]:
    """Encode by a dictionary; None has code -1."""
    codes: dict[str, int] = {}
    encoded = [-1 if value is None else codes.setdefault(value, len(codes)) for value in values]
    return {"texts": [make_printable(text) for text in codes], "codes": encoded}


def encode_numbers(values: Iterable[float | None], digits: int = DIGITS) -> list[float | int | None]:
    """Non-finite numbers become None."""
    return [
        None
        if value is None or not isfinite(value)
        else value
        if isinstance(value, int)
        else shorten_number(value, digits)
        for value in values
    ]


def cut_text(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n\n[... {len(text) - 2 * half:,} characters omitted ...]\n\n{text[-half:]}"
