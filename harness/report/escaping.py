"""Text of candidates and models made safe to look at: in a terminal, and in a spreadsheet.

What a candidate printed may hold escape sequences that rewrite the screen, and what it named a formula that a
spreadsheet runs. Nothing is removed: what is unsafe becomes visible.
"""

from __future__ import annotations

import re

# C0 and C1 controls but for newline and tab, DEL, the marks that reorder text on the screen, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t")


def make_printable(text: str) -> str:
    """The text with control characters written out, such as `\\x1b`; newlines and tabs stay, CRLF becomes a newline."""
    return _UNSAFE.sub(_write_out, text.replace("\r\n", "\n")) if not text.isprintable() else text


def make_cell(text: str) -> str:
    """The text for a cell of a spreadsheet: printable, with a `'` before it where it would be taken for a formula."""
    printable = make_printable(text)
    return f"'{printable}" if printable.startswith(_FORMULA_STARTS) else printable


def _write_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
