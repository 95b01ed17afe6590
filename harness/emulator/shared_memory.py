"""Rewrites `__shared__` variables to references into the block's memory.

`__shared__ float tile[16][17], sum;` becomes a `typedef` with the same declarators and a reference per name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.syntax.cpp import Token, find_arguments, match_backward, match_forward, step, text_at

_DROPPED = frozenset({"__shared__", "extern", "static", "__device__", "inline"})
_RECORDS = frozenset({"struct", "union", "class"})
_WITH_ARGUMENTS = frozenset({"__align__", "alignas", "__attribute__"})
SPECIFIERS = frozenset({"__shared__", "extern", "static", "volatile", "const", "__device__", "inline"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDeclaration:
    first: int
    last: int
    names: tuple[int, ...]
    dropped: tuple[tuple[int, int], ...]
    is_dynamic: bool


def read_shared_declaration(tokens: list[Token], at: int) -> SharedDeclaration | None:
    reader = _Reader(tokens)
    first = _find_first(tokens, at)
    where: int | None = first
    while where is not None and tokens[where].text != ";":
        where = reader.read(where)
    reader.end_declarator()
    if where is None or not reader.names:
        return None
    return SharedDeclaration(
        first=first, last=where, names=tuple(reader.names), dropped=tuple(reader.dropped), is_dynamic=reader.is_dynamic
    )


class _Reader:
    """The last word of a declarator before its dimensions is its name."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self.names: list[int] = []
        self.dropped: list[tuple[int, int]] = []
        self.is_dynamic = False
        self._angles = 0
        self._candidate: int | None = None
        self._is_named = False

    def read(self, at: int) -> int | None:
        """Read one token; returns the next index, or None if unsupported."""
        token = self._tokens[at]
        if token.text in _WITH_ARGUMENTS:
            arguments = find_arguments(self._tokens, at)
            if arguments is None:
                return None
            self.dropped.append((at, arguments[1]))
            return step(self._tokens, arguments[1])
        if token.text in _RECORDS:
            return _skip_record(self._tokens, at)
        if token.text in ("(", "[", "{"):
            return self._skip_brackets(at)
        if token.text == "=" and not self._angles:
            return None
        if token.text in _DROPPED:
            self.is_dynamic |= token.text == "extern"
            self.dropped.append((at, at))
        elif token.text in ("<", ">"):
            self._angles += 1 if token.text == "<" else -1
        elif token.text == "," and not self._angles:
            self.end_declarator()
        elif token.kind == "word" and not self._angles and not self._is_named:
            self._candidate = at
        return step(self._tokens, at)

    def end_declarator(self) -> None:
        if self._candidate is not None and not self._is_named:
            self.names.append(self._candidate)
        self._candidate, self._is_named = None, False

    def _skip_brackets(self, at: int) -> int | None:
        closing = match_forward(self._tokens, at)
        if closing is None:
            return None
        follows = step(self._tokens, closing)
        is_after_name = not self._angles and self._candidate is not None
        if is_after_name and self._tokens[at].text == "[":
            self.end_declarator()
            self._is_named = True
        elif is_after_name and text_at(self._tokens, follows) not in ("::", ">"):
            return None  # pointer to array, or initializer: not supported
        return follows


def _skip_record(tokens: list[Token], at: int) -> int | None:
    """Skip `union {...}` or `struct Name {...}`; not the type `struct Name`."""
    where = step(tokens, at)
    after = None if where is None or tokens[where].kind != "word" else step(tokens, where)
    where = after if text_at(tokens, after) == "{" else where
    return step(tokens, match_forward(tokens, where)) if text_at(tokens, where) == "{" else where


def _find_first(tokens: list[Token], at: int) -> int:
    first = at
    before = step(tokens, at, -1)
    while before is not None:
        text = tokens[before].text
        if text == ")":
            word = step(tokens, match_backward(tokens, before), -1)
            if word is None or tokens[word].text not in _WITH_ARGUMENTS:
                break
            before = word
        elif text not in SPECIFIERS:
            is_type = tokens[before].kind == "word" and text_at(tokens, step(tokens, before, -1)) in SPECIFIERS
            if not is_type:
                break
        first = before
        before = step(tokens, before, -1)
    return first


def write_shared_declaration(
    tokens: list[Token], declared: SharedDeclaration, edit: Callable[[int, str], None], *, in_function: bool
) -> str:
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
        # Several declarations of dynamic memory must agree in type, as extern variables; the compiler checks it.
        one_type = f"extern {kind} harness_dynamic_{name}; " if in_function else ""
        variable = f" {one_type}{element}* {name} = {found};"
    else:
        tag = f"harness_tag_{name}"
        found = f'{space}::shared_variable<{kind}, {tag}>("{name}")'
        variable = f" struct {tag} {{}}; {kind}& {name} = {found};"
    if in_function:
        return variable
    tag_only = "" if is_dynamic else f" struct harness_tag_{name} {{}};"
    return f"{tag_only}\n#define {name} ({found})\n#line {line} \n"
