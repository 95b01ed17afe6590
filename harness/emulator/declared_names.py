"""Finds names declared by the runtime's headers, including those pasted by macros (`h##Name`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from harness.emulator.headers import RUNTIME
from harness.syntax.cpp import Token, join, match_forward, step, tokenize

_PASTE = re.compile(r"\s*##\s*")
_DEEPEST = 8

Macros = dict[str, list[tuple[list[str], str]]]  # parameters and body of each definition


@cache
def list_declared_names() -> frozenset[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(RUNTIME.rglob("*")) if path.is_file()]
    return find_declared_names("\n".join(texts))


def find_declared_names(text: str) -> frozenset[str]:
    tokens = tokenize(text)
    macros = _read_macros(tokens)
    written_out = [part for call in _find_calls(tokens, macros) for part in _expand(*call, macros, _DEEPEST)]
    return frozenset(
        token.text for part in (tokens, *map(tokenize, written_out)) for token in part if token.kind == "word"
    )


def _read_macros(tokens: list[Token]) -> Macros:
    macros: Macros = {}
    for at, token in enumerate(tokens):
        name = step(tokens, at) if token.text == "define" and token.directive else None
        if name is None or tokens[name + 1].text != "(":
            continue
        closing = match_forward(tokens, name + 1)
        if closing is None:
            continue
        end = closing + 1
        while end < len(tokens) and tokens[end].directive == token.directive:
            end += 1
        parameters = [part.text for part in tokens[name + 2 : closing] if part.kind == "word"]
        macros.setdefault(tokens[name].text, []).append((parameters, join(tokens[closing + 1 : end])))
    return macros


def _find_calls(tokens: list[Token], macros: Macros) -> Iterator[tuple[str, list[str]]]:
    for at, token in enumerate(tokens):
        opening = step(tokens, at) if token.text in macros else None
        closing = None if opening is None or tokens[opening].text != "(" else match_forward(tokens, opening)
        if opening is not None and closing is not None:
            yield token.text, _split(tokens, opening, closing)


def _split(tokens: list[Token], opening: int, closing: int) -> list[str]:
    arguments, at = [""], opening + 1
    while at < closing:
        end = match_forward(tokens, at) if tokens[at].text in ("(", "[", "{") else None
        if end is not None:
            arguments[-1] += join(tokens[at : end + 1])
            at = end + 1
            continue
        if tokens[at].text == ",":
            arguments.append("")
        else:
            arguments[-1] += tokens[at].text
        at += 1
    return [argument.strip() for argument in arguments]


def _expand(name: str, arguments: list[str], macros: Macros, deepest: int) -> Iterator[str]:
    for parameters, body in macros[name]:
        if len(parameters) != len(arguments) or deepest == 0:
            continue
        values = dict(zip(parameters, arguments, strict=True))
        words = tokenize(body)
        text = _PASTE.sub("", "".join(values.get(word.text, word.text) for word in words))
        yield text
        for call in _find_calls(tokenize(text), macros):
            yield from _expand(*call, macros, deepest - 1)
