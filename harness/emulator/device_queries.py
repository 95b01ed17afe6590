"""Rewrites host code that queries or selects the GPU, for CPU tensors."""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.syntax.cpp import Token, step, text_at

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
    elif text in _ANSWERS and _follows_cuda(tokens, at):
        _write_answer(tokens, at, edit)
    elif text in ("CUDA", "CPU") and _follows_device_type(tokens, at):
        edit(at, "CPU" if text == "CUDA" or not _is_compared(tokens, at) else "CUDA")
    elif text == "cuda" and previous in (".", "->") and _is_empty_call(tokens, at):
        edit(at, "cpu")
    elif text == "cpu" and previous in (".", "->") and _is_empty_call(tokens, at):
        edit(at, "clone")  # a copy, as from a GPU: writes are not visible here


def _is_dispatch_key(tokens: list[Token], at: int) -> bool:
    """True in `TORCH_LIBRARY_IMPL(name, CUDA, m)` or `DispatchKey::CUDA`."""
    texts = [tokens[position].text for position in _before(tokens, at, 4)]
    is_argument = texts[:1] == [","] and texts[2:] == ["(", "TORCH_LIBRARY_IMPL"]
    return is_argument or texts[:2] == ["::", "DispatchKey"]


def _follows_cuda(tokens: list[Token], at: int) -> bool:
    return [tokens[position].text for position in _before(tokens, at, 4)] == ["::", "cuda", "::", "torch"]


def _write_answer(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    """Replace torch's function, which would report no GPU."""
    for position in _before(tokens, at, 4):
        edit(position, "")
    edit(at, f"([](auto...) {{ {_ANSWERS[tokens[at].text]} }})")


def _answer_index(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    """Write device index 0: `is_cuda()` is false here, that is 0."""
    if tokens[at].text == "get_device":
        edit(at, "is_cuda")
    elif [tokens[position].text for position in _before(tokens, at, 4)][1:] == [")", "(", "device"]:
        edit(at, "is_cuda" if tokens[at].text == "index" else "is_cpu")


def _before(tokens: list[Token], at: int, count: int) -> list[int]:
    positions: list[int] = []
    where = step(tokens, at, -1)
    while where is not None and len(positions) < count:
        positions.append(where)
        where = step(tokens, where, -1)
    return positions


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
    positions = _before(tokens, at, 5)  # the dot before is_cuda, then `)`, `(`, `type`, and the dot before it
    texts = [tokens[position].text for position in positions]
    if texts[1:4] == [")", "(", "type"] and texts[4:] in (["."], ["->"]):
        for position in positions[:4]:
            edit(position, "")
