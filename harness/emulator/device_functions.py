"""Finds device functions, and kernel declarations that nvcc refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.syntax.cpp import LAUNCH_BOUNDS, Token, match_forward, step

_ATTRIBUTES = LAUNCH_BOUNDS | frozenset({
    "__attribute__", "__align__", "alignas", "decltype", "noexcept", "__maxnreg__",
    "__cluster_dims__", "enable_if_t", "__block_size__", "__declspec",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Token indices of a device function; `words` are its specifiers and type."""

    name: int
    parameters: tuple[int, int]
    opening: int
    closing: int
    words: tuple[str, ...]

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def is_constexpr(self) -> bool:
        return "constexpr" in self.words or "consteval" in self.words


def find_bodies(tokens: list[Token]) -> Iterator[Body]:
    """Skips `__host__ __device__` functions."""
    for at, token in enumerate(tokens):
        if token.text in ("__global__", "__device__") and token.kind == "word" and not token.directive:
            body = _read_body(tokens, at)
            if body is not None:
                yield body


def _read_body(tokens: list[Token], at: int) -> Body | None:
    words, where, group = [*_read_head_before(tokens, at), tokens[at].text], step(tokens, at), None
    name = None
    while where is not None and tokens[where].text not in (";", "{", "}", "=", ":"):
        words.append(tokens[where].text)
        if tokens[where].text == "(":
            closing, word = match_forward(tokens, where), step(tokens, where, -1)
            if closing is None or word is None:
                return None
            if name is None and word > at and tokens[word].text not in _ATTRIBUTES:
                name, group = word, (where, closing)
            where = closing
        where = step(tokens, where)
    if where is None or name is None or group is None or tokens[where].text != "{":
        return None
    is_second = tokens[at].text == "__device__" and "__global__" in words
    closing = match_forward(tokens, where)
    if closing is None or is_second or "__host__" in words or tokens[name].kind != "word":
        return None
    return Body(name=name, parameters=group, opening=where, closing=closing, words=tuple(words))


def _read_head_before(tokens: list[Token], at: int) -> list[str]:
    words = []
    before = step(tokens, at, -1)
    while before is not None and (tokens[before].kind == "word" or tokens[before].text == ">"):
        words.append(tokens[before].text)
        before = step(tokens, before, -1)
    return words


def find_misplaced(tokens: list[Token], records: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield invalid kernel declarations with nvcc's message."""
    for at, token in enumerate(tokens):
        if token.text != "__global__" or token.directive:
            continue
        before = _read_head_before(tokens, at)
        after = step(tokens, at)
        beside = {*before, "" if after is None else tokens[after].text}
        if any(low < at < high for low, high in records) and "friend" not in before:
            yield at, "a __global__ function or function template cannot be a member function"
        elif beside & {"__device__", "__host__"}:
            yield at, "illegal combination of memory qualifiers"
        else:
            yield from _find_errors_of_head(tokens, at)


def _find_errors_of_head(tokens: list[Token], at: int) -> Iterator[tuple[int, str]]:
    body = _read_body(tokens, at)
    if body is None:
        return
    low, high = body.parameters
    last = step(tokens, high, -1)
    before = None if last is None else step(tokens, last, -1)
    if last is not None and before is not None and tokens[last].text == "..." and tokens[before].text in (",", "("):
        yield last, "a __global__ function cannot have ellipsis"
    behind = [tokens[position].text for position in range(high, body.opening)]
    if "__launch_bounds__" in behind:
        yield low, "attributes are not permitted in a function definition: __launch_bounds__ stands before the name"
    if "auto" in body.words and "->" not in behind:
        yield at, "a __global__ function must not have a deduced return type"
