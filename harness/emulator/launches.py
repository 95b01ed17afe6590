"""Rewrites kernel launches, `threadIdx` and its kind unless shadowed, and host code that selects the GPU."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.syntax.cpp import Token, find_arguments, find_directive_end, match_backward, match_forward, step, text_at

_INDICES = {
    "threadIdx": "(::harness_emulator::current->thread)",
    "blockIdx": "(::harness_emulator::current->block->index)",
    "blockDim": "(::harness_emulator::current->block->launch->block)",
    "gridDim": "(::harness_emulator::current->block->launch->grid)",
}
_NO_TYPES = frozenset({"return", "else", "do", "case", "throw", "co_return", "sizeof", "new", "delete", "goto"})
_AFTER_A_NAME = frozenset({"=", "(", "{", "[", ",", ";", ")", ":"})


def rewrite_indices(tokens: list[Token], edit: Callable[[int, str], None], inside: Iterable[tuple[int, int]]) -> None:
    positions = [at for at, token in enumerate(tokens) if token.kind == "word" and token.text in _INDICES]
    shadows = [(tokens[at].text, *_find_scope(tokens, at)) for at in positions if _is_declared(tokens, at)]
    for at in positions:
        name, is_member = tokens[at].text, text_at(tokens, step(tokens, at, -1)) in (".", "->")
        if is_member or any(name == shadow and low <= at <= high for shadow, low, high in shadows):
            continue
        is_local = not tokens[at].directive and any(low < at < high for low, high in inside)
        edit(at, f"(harness_place.{name})" if is_local else _INDICES[name])


def _is_declared(tokens: list[Token], at: int) -> bool:
    """Recognises forms that no dim3 expression has."""
    before = step(tokens, at, -1)
    previous, following = text_at(tokens, before), text_at(tokens, step(tokens, at))
    if previous in (",", "["):  # one of several variables
        return following in ("(", "{", "=", ";") or (previous, following) in ((",", "]"), ("[", ","))
    if previous in ("&", "&&", "*"):
        before = step(tokens, before, -1)
    return before is not None and following in _AFTER_A_NAME and _ends_type(tokens, before)


def _ends_type(tokens: list[Token], at: int) -> bool:
    before = step(tokens, at, -1)
    if before is not None and tokens[before].text == "define" and tokens[before].directive > 0:
        return False  # macro name
    return _ends_name(tokens[at], _NO_TYPES)


def _ends_name(token: Token, no_names: frozenset[str]) -> bool:
    """Return whether a name or its template arguments may end with the token."""
    return token.text == ">" or (token.kind == "word" and token.text not in no_names)


def _find_scope(tokens: list[Token], at: int) -> tuple[int, int]:
    """Return the enclosing block; for parameters the function; in a macro, the rest of it."""
    where: int | None = at
    while where is not None and tokens[where].text not in ("{", "("):
        where = match_backward(tokens, where) if tokens[where].text in (")", "]", "}") else where
        where = step(tokens, where, -1)
    if where is None:
        return at, find_directive_end(tokens, at) - 1 if tokens[at].directive > 0 else at
    closing = match_forward(tokens, where)
    if closing is not None and tokens[where].text == "(":
        closing = _find_end_of_body(tokens, closing)
    return where, at if closing is None else closing


def _find_end_of_body(tokens: list[Token], closing: int) -> int | None:
    where = step(tokens, closing)
    while where is not None and tokens[where].text not in ("{", ";", ")"):
        where = step(tokens, match_forward(tokens, where) if tokens[where].text == "(" else where)
    return match_forward(tokens, where) if text_at(tokens, where) == "{" else where


_CONTROL = frozenset({"if", "while", "for", "switch", "return", "else", "do"})
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")
_QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__"})


def find_chevrons_end(tokens: list[Token], at: int) -> int | None:
    """Return the last `>` of `>>>`."""
    where = step(tokens, at)
    while where is not None:
        text = tokens[where].text
        if text in ("(", "[", "{"):
            where = match_forward(tokens, where)
        elif [token.text for token in tokens[where : where + 3]] == [">"] * 3 and find_arguments(tokens, where + 2):
            return where + 2
        where = step(tokens, where)
    return None


def find_callee(tokens: list[Token], at: int) -> int | None:
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
        if before is None or tokens[before].text not in ("::", ".", "->", "##"):
            return start
        start = before
        where = step(tokens, before, -1)
        if tokens[before].text == "::" and where is not None and not _ends_name(tokens[where], _CONTROL):
            return start
    return start


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


_DEVICE_TEXT = re.compile(r'"cuda(?::\d+)?"')
_ANSWERS = {
    "is_available": "return true;", "device_count": "return size_t(1);", "synchronize": "",
}  # fmt: skip
_RENAMED = {"is_cuda": "is_cpu", "is_cpu": "is_cuda", "kCUDA": "kCPU"}


def rename_host_names(tokens: list[Token], edit: Callable[[int, str], None]) -> None:
    for at, token in enumerate(tokens):
        if token.kind == "string" and _DEVICE_TEXT.fullmatch(token.text):
            edit(at, '"cpu"')
        elif token.kind == "word":
            _rename_word(tokens, at, edit)


def _rename_word(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    text, previous = tokens[at].text, text_at(tokens, step(tokens, at, -1))
    if text in ("is_cuda", "is_cpu") and previous in (".", "->"):
        edit(at, _RENAMED[text])
        if text == "is_cuda":
            _drop_type_call(tokens, at, edit)
    elif text in ("get_device", "index", "has_index") and previous in (".", "->") and _is_empty_call(tokens, at):
        _answer_index(tokens, at, edit)
    elif text == "kCUDA":
        edit(at, "kCPU")
    elif text == "kCPU" and _is_compared(tokens, at):
        edit(at, "kCUDA")
    elif text in ("CUDA", "CPU") and _is_dispatch_key(tokens, at):
        edit(at, "CPU" if text == "CUDA" else "CUDA")
    elif text in _ANSWERS and _texts_before(tokens, at, 4) == ["::", "cuda", "::", "torch"]:
        # Replace torch's function, which would report no GPU.
        for position in _before(tokens, at, 4):
            edit(position, "")
        edit(at, f"([](auto...) {{ {_ANSWERS[tokens[at].text]} }})")
    elif text in ("CUDA", "CPU") and _follows_device_type(tokens, at):
        edit(at, "CPU" if text == "CUDA" or not _is_compared(tokens, at) else "CUDA")
    elif text == "cuda" and previous in (".", "->") and _is_empty_call(tokens, at):
        edit(at, "cpu")
    elif text == "cpu" and previous in (".", "->") and _is_empty_call(tokens, at):
        edit(at, "clone")  # a copy, as from a GPU: writes are not visible here


def _is_dispatch_key(tokens: list[Token], at: int) -> bool:
    """True in `TORCH_LIBRARY_IMPL(name, CUDA, m)` or `DispatchKey::CUDA`."""
    texts = _texts_before(tokens, at, 4)
    is_argument = texts[:1] == [","] and texts[2:] == ["(", "TORCH_LIBRARY_IMPL"]
    return is_argument or texts[:2] == ["::", "DispatchKey"]


def _answer_index(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    """Write device index 0: `is_cuda()` is false here, that is 0."""
    if tokens[at].text == "get_device":
        edit(at, "is_cuda")
    elif _texts_before(tokens, at, 4)[1:] == [")", "(", "device"]:
        edit(at, "is_cuda" if tokens[at].text == "index" else "is_cpu")


def _before(tokens: list[Token], at: int, count: int) -> list[int]:
    positions: list[int] = []
    where = step(tokens, at, -1)
    while where is not None and len(positions) < count:
        positions.append(where)
        where = step(tokens, where, -1)
    return positions


def _texts_before(tokens: list[Token], at: int, count: int) -> list[str]:
    """Return the nearest first."""
    return [tokens[position].text for position in _before(tokens, at, count)]


def _is_empty_call(tokens: list[Token], at: int) -> bool:
    opening = step(tokens, at)
    return text_at(tokens, opening) + text_at(tokens, step(tokens, opening)) == "()"


def _follows_device_type(tokens: list[Token], at: int) -> bool:
    scope = step(tokens, at, -1)
    return text_at(tokens, scope) == "::" and text_at(tokens, step(tokens, scope, -1)) in ("DeviceType", "Type")


def _is_compared(tokens: list[Token], at: int) -> bool:
    if text_at(tokens, step(tokens, at)) in ("==", "!="):
        return True
    before = step(tokens, at, -1)
    while text_at(tokens, before) == "::":
        before = step(tokens, step(tokens, before, -1), -1)
    return text_at(tokens, before) in ("==", "!=", "case")


def _drop_type_call(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    """Handle `x.type().is_cuda()`: unlike tensors, types have no `is_cpu`."""
    texts = _texts_before(tokens, at, 5)  # the dot before is_cuda, then `)`, `(`, `type`, and the dot before it
    if texts[1:4] == [")", "(", "type"] and texts[4:] in (["."], ["->"]):
        for position in _before(tokens, at, 4):
            edit(position, "")
