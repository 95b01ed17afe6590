"""Finds the pointers among a kernel's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.syntax.cpp import Token

_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")
_QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__"})


def list_pointers(tokens: Sequence[Token]) -> list[str]:
    return [name for declared in _split(tokens) if (name := _find_name(declared))]


def _split(tokens: Sequence[Token]) -> Iterator[list[str]]:
    """Yield the tokens of each parameter outside brackets, without a default value; `[` marks an array."""
    depth, part, has_default = 0, list[str](), False
    for token in tokens:
        depth -= token.text in _CLOSING
        if depth == 0 and token.text == ",":
            yield part
            part, has_default = [], False
            continue
        has_default = has_default or token.text == "="
        if depth == 0 and not token.is_blank and not has_default and token.text not in _CLOSING:
            part.append(token.text)
        depth += token.text in _OPENING
    yield part


def _find_name(declared: list[str]) -> str:
    words = declared[:-1] if declared and declared[-1] == "[" else declared
    is_array = len(words) < len(declared)
    stars = [at for at, word in enumerate(words) if word == "*"]
    is_accessor = any("Accessor" in word for word in words)
    if not words or not (stars or is_array or is_accessor) or {"(", "..."} & set(words):
        return ""
    behind = [word for word in words[stars[-1] + 1 :] if word not in _QUALIFIERS] if stars else words[-1:]
    return behind[0] if len(behind) == 1 and behind[0].isidentifier() and len(words) > 1 else ""
