from __future__ import annotations

from harness.syntax.cpp import Token, match_backward, match_forward, step

_CONTROL = frozenset({"if", "while", "for", "switch", "return", "else", "do"})


def find_chevrons_end(tokens: list[Token], at: int) -> int | None:
    """Return the last `>` of `>>>`."""
    where = step(tokens, at)
    while where is not None:
        text = tokens[where].text
        if text in ("(", "[", "{"):
            where = match_forward(tokens, where)
            if where is None:
                return None
        elif text == ">" and [token.text for token in tokens[where : where + 3]] == [">"] * 3:
            after = step(tokens, where + 2)
            if after is not None and tokens[after].text == "(":
                return where + 2
        where = step(tokens, where)
    return None


def find_callee(tokens: list[Token], at: int) -> int | None:  # noqa: PLR0911 - one for each end of an expression
    where = step(tokens, at, -1)
    start = None
    while where is not None:
        token = tokens[where]
        if token.text in (">", ")", "]"):
            where = match_backward(tokens, where)
            if where is None:
                return start
            start = where
            before = step(tokens, where, -1)
            is_call = before is not None and (
                (tokens[before].kind == "word" and tokens[before].text not in _CONTROL)
                or tokens[before].text in (")", "]")
            )
            if token.text != ">" and not is_call:
                return start
            where = before
            continue
        if token.kind != "word":
            return start
        start = where
        before = step(tokens, where, -1)
        if before is None or tokens[before].text not in ("::", ".", "->", "##", "*", "&"):
            return start
        if tokens[before].text in ("*", "&"):
            return start
        start = before
        where = step(tokens, before, -1)
        if tokens[before].text == "::" and where is not None:
            is_scope = tokens[where].text == ">" or (
                tokens[where].kind == "word" and tokens[where].text not in _CONTROL
            )
            if not is_scope:
                return start
    return start
