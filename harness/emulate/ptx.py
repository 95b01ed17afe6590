"""Inline PTX as C++: each instruction that is known becomes a call of the runtime; any other is refused by name."""

from __future__ import annotations

from harness.emulate.tokens import Token


class PtxError(Exception):
    """What in the assembly is not covered."""


def write_ptx(tokens: list[Token], opening: int, closing: int) -> str:
    """The C++ of the assembly whose parentheses are given. Raises PtxError."""
    text = "".join(token.text for token in tokens[opening + 1 : closing] if token.kind == "string")
    raise PtxError(text.strip('"')[:80])
