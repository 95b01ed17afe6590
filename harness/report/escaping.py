"""Escapes strings from candidates and models: terminal control sequences and spreadsheet formulas."""

from __future__ import annotations

import re

# C0 and C1 controls except newline and tab, DEL, bidirectional controls, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # full-width ones too


def make_printable(text: str) -> str:
    r"""Write control characters out, such as `\x1b`; newlines and tabs stay, CRLF becomes a newline."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n")) if not text.isprintable() else text


def make_cell(text: str) -> str:
    """Printable, with a leading `'` if a spreadsheet would read it as a formula."""
    printable = make_printable(text)
    return f"'{printable}" if printable.startswith(_FORMULA_STARTS) else printable


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
