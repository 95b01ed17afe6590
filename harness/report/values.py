"""Formats values: strings without control sequences and formulas, rounded numbers, JSON without infinities."""

import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite
from typing import Any

# C0 and C1 controls except newline and tab, DEL, bidirectional controls, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # full-width ones too


def make_printable(text: str) -> str:
    r"""Escape control characters, such as `\x1b`; newlines and tabs stay, CRLF becomes a newline."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n")) if not text.isprintable() else text


def make_cell(text: str) -> str:
    """Prefix `'` if a spreadsheet would read the text as a formula."""
    printable = make_printable(text)
    return f"'{printable}" if printable.startswith(_FORMULA_STARTS) else printable


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def format_fixed(value: float, digits: int) -> str:
    """Round half away from zero, like JavaScript's `toFixed`."""
    if not isfinite(value):
        return str(value)
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def format_range(low: float | None, high: float | None) -> str:
    """Return a text such as `[1.20, 1.26]`, or "" if an end is unknown."""
    return "" if low is None or high is None else f"[{format_fixed(low, 2)}, {format_fixed(high, 2)}]"


def format_rate(share: float | None, digits: int = 1) -> str:
    """Format a share in 0..1 as a percentage."""
    return "-" if share is None else f"{format_fixed(100 * share, digits)}%"


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, whose cells are escaped."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def make_strict(value: Any, *, as_strings: bool = False) -> Any:
    """Replace non-finite floats by None, or by "inf", "-inf" and "nan" with `as_strings`."""
    if isinstance(value, dict):
        return {key: make_strict(entry, as_strings=as_strings) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [make_strict(entry, as_strings=as_strings) for entry in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value) if as_strings else None
    return value
