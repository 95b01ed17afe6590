"""Declarations of variables in shared memory, as declarations that find their place in the block's memory.

`__shared__ float tile[16][17], sum;` becomes a `typedef` of the same shape (which has the same grammar), and a reference for
each name; what is `extern` becomes a pointer to the dynamic part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.emulate.tokens import Token, match_backward, match_forward, step

_DROPPED = frozenset({"__shared__", "extern", "static", "__device__", "inline"})
_RECORDS = frozenset({"struct", "union", "class"})
_WITH_ARGUMENTS = frozenset({"__align__", "alignas", "__attribute__"})
SPECIFIERS = frozenset({"__shared__", "extern", "static", "volatile", "const", "__device__", "inline"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDeclaration:
    """Token indices: first and last (the semicolon) of the statement, the names, and what to leave out."""

    first: int
    last: int
    names: tuple[int, ...]
    dropped: tuple[tuple[int, int], ...]
    is_dynamic: bool


def read_shared_declaration(tokens: list[Token], at: int) -> SharedDeclaration | None:
    """The declaration whose `__shared__` is at `at`, or None where it is of a form that is not covered."""
    first = _find_first(tokens, at)
    names: list[int] = []
    dropped: list[tuple[int, int]] = []
    is_dynamic = False
    angles, candidate, has_name = 0, None, False
    where: int | None = first
    while where is not None:
        token = tokens[where]
        if token.text == ";":
            names += [candidate] if candidate is not None and not has_name else []
            if not names:
                return None
            return SharedDeclaration(
                first=first, last=where, names=tuple(names), dropped=tuple(dropped), is_dynamic=is_dynamic
            )
        if token.text in _WITH_ARGUMENTS:
            opening = step(tokens, where)
            closing = None if opening is None else match_forward(tokens, opening)
            if closing is None:
                return None
            dropped.append((where, closing))
            where = step(tokens, closing)
            continue
        if token.text in _RECORDS:
            where = _skip_record(tokens, where)
            continue
        if token.text in _DROPPED:
            is_dynamic |= token.text == "extern"
            dropped.append((where, where))
        elif token.text in ("(", "[", "{"):
            closing = match_forward(tokens, where)
            if closing is None or (token.text != "[" and not angles and candidate is not None and not has_name):
                after = None if closing is None else step(tokens, closing)
                if closing is None or after is None or tokens[after].text not in ("::", ">"):
                    return None
            if token.text == "[" and not angles and candidate is not None and not has_name:
                names.append(candidate)
                has_name = True
            where = step(tokens, closing)
            continue
        elif token.text == "<" and not has_name:
            angles += 1
        elif token.text == ">" and not has_name:
            angles -= 1
        elif token.text == "=" and not angles:
            return None
        elif token.text == "," and not angles:
            names += [candidate] if candidate is not None and not has_name else []
            candidate, has_name = None, False
        elif token.kind == "word" and not angles and not has_name:
            candidate = where
        where = step(tokens, where)
    return None


def _skip_record(tokens: list[Token], at: int) -> int | None:
    """What follows `union {...}` or `struct Name`, which is a type as any other."""
    where = step(tokens, at)
    if where is not None and tokens[where].text == "{":
        closing = match_forward(tokens, where)
        return None if closing is None else step(tokens, closing)
    return where


def _find_first(tokens: list[Token], at: int) -> int:
    """Specifiers may stand before `__shared__`."""
    first = at
    before = step(tokens, at, -1)
    while before is not None:
        text = tokens[before].text
        if text == ")":
            opening = match_backward(tokens, before)
            word = None if opening is None else step(tokens, opening, -1)
            if word is None or tokens[word].text not in _WITH_ARGUMENTS:
                break
            before = word
        elif text not in SPECIFIERS:
            word = step(tokens, before, -1)
            is_type = tokens[before].kind == "word" and word is not None and tokens[word].text in SPECIFIERS
            if not is_type:
                break
        first = before
        before = step(tokens, before, -1)
    return first


def write_shared_declaration(
    tokens: list[Token], declared: SharedDeclaration, edit: Callable[[int, str], None], *, in_function: bool
) -> str:
    """Edits the tokens into a typedef and returns what must follow its semicolon."""
    for low, high in declared.dropped:
        for at in range(low, high + 1):
            if tokens[at].kind != "newline":
                edit(at, "")
    after = []
    for at in declared.names:
        name = tokens[at].text
        edit(at, f"harness_type_{name}")
        after.append(_write_variable(name, tokens[at].line, declared.is_dynamic, in_function))
    first = tokens[declared.first]
    is_dropped = any(low <= declared.first <= high for low, high in declared.dropped)
    edit(declared.first, "typedef " if is_dropped else f"typedef {first.text}")
    return "".join(after)


def _write_variable(name: str, line: int, is_dynamic: bool, in_function: bool) -> str:
    kind, space = f"harness_type_{name}", "::harness_emulator"
    if is_dynamic:
        element = f"std::remove_extent_t<{kind}>"
        found = f"{space}::dynamic_shared<{element}>()"
        variable = f" {element}* {name} = {found};"
    else:
        tag = f"harness_tag_{name}"
        found = f'{space}::shared_variable<{kind}, {tag}>("{name}")'
        variable = f" struct {tag} {{}}; {kind}& {name} = {found};"
    if in_function:
        return variable
    tag_only = "" if is_dynamic else f" struct harness_tag_{name} {{}};"
    return f"{tag_only}\n#define {name} ({found})\n#line {line} \n"
