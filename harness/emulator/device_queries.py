"""What asks whether a tensor is on a GPU, or puts it there, asked of tensors on the CPU instead."""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.emulator.cpp_tokens import Token, step

_DEVICE_TEXT = re.compile(r'"cuda(?::\d+)?"')
_ANSWERS = {
    "is_available": "return true;", "device_count": "return size_t(1);", "synchronize": "",
}  # fmt: skip
_RENAMED = {"is_cuda": "is_cpu", "is_cpu": "is_cuda", "kCUDA": "kCPU"}


def rename_host_names(tokens: list[Token], edit: Callable[[int, str], None]) -> None:
    """Edits the tokens that name the GPU, wherever they stand, macros included."""
    for at, token in enumerate(tokens):
        if token.kind == "string" and _DEVICE_TEXT.fullmatch(token.text):
            edit(at, '"cpu"')
        elif token.kind == "word":
            _rename_word(tokens, at, edit)


def _rename_word(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    text = tokens[at].text
    before = step(tokens, at, -1)
    previous = "" if before is None else tokens[before].text
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
        edit(at, "clone")  # a copy, as from a GPU: what is written there does not show here


def _is_dispatch_key(tokens: list[Token], at: int) -> bool:
    """`TORCH_LIBRARY_IMPL(name, CUDA, m)`, and the key by its own name."""
    texts = [tokens[place].text for place in _before(tokens, at, 4)]
    is_argument = texts[:1] == [","] and texts[2:] == ["(", "TORCH_LIBRARY_IMPL"]
    return is_argument or texts[:2] == ["::", "DispatchKey"]


def _follows_cuda(tokens: list[Token], at: int) -> bool:
    return [tokens[place].text for place in _before(tokens, at, 4)] == ["::", "cuda", "::", "torch"]


def _write_answer(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    """torch's own would say that there is no GPU."""
    for place in _before(tokens, at, 4):
        edit(place, "")
    edit(at, f"([](auto...) {{ {_ANSWERS[tokens[at].text]} }})")


def _answer_index(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    """0, as of the only GPU: on the CPU nothing is on CUDA, which is false, which is 0."""
    if tokens[at].text == "get_device":
        edit(at, "is_cuda")
    elif [tokens[place].text for place in _before(tokens, at, 4)][1:] == [")", "(", "device"]:
        edit(at, "is_cuda" if tokens[at].text == "index" else "is_cpu")


def _before(tokens: list[Token], at: int, count: int) -> list[int]:
    """Where so many tokens before this one stand, the nearest first; fewer at the beginning."""
    places: list[int] = []
    where = step(tokens, at, -1)
    while where is not None and len(places) < count:
        places.append(where)
        where = step(tokens, where, -1)
    return places


def _is_empty_call(tokens: list[Token], at: int) -> bool:
    opening = step(tokens, at)
    closing = None if opening is None else step(tokens, opening)
    return opening is not None and closing is not None and tokens[opening].text + tokens[closing].text == "()"


def _follows_device_type(tokens: list[Token], at: int) -> bool:
    scope = step(tokens, at, -1)
    name = None if scope is None or tokens[scope].text != "::" else step(tokens, scope, -1)
    return name is not None and tokens[name].text in ("DeviceType", "Type")


def _is_compared(tokens: list[Token], at: int) -> bool:
    """Whether `==` or `!=` stands beside the qualified name at `at`."""
    after = step(tokens, at)
    if after is not None and tokens[after].text in ("==", "!="):
        return True
    before = step(tokens, at, -1)
    while before is not None and tokens[before].text == "::":
        before = step(tokens, before, -1)
        before = None if before is None else step(tokens, before, -1)
    return before is not None and tokens[before].text in ("==", "!=", "case")


def _drop_type_call(tokens: list[Token], at: int, edit: Callable[[int, str], None]) -> None:
    """`x.type().is_cuda()`: a type, unlike a tensor, cannot be asked whether it is on the CPU."""
    places = _before(tokens, at, 5)  # the dot before is_cuda, then `)`, `(`, `type`, and the dot before it
    texts = [tokens[place].text for place in places]
    if texts[1:4] == [")", "(", "type"] and texts[4:] in (["."], ["->"]):
        for place in places[:4]:
            edit(place, "")
