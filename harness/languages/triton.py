"""Triton kernels: Python functions that Triton compiles at their first launch."""

from __future__ import annotations

import re

from harness.domain import EMULATED
from harness.languages.decorated import list_decorated
from harness.languages.rules import LanguageRules

EMULATED_SINCE = (3, 6)  # of its interpreter
MARKS = ("triton.jit", "from triton import")
_DECORATORS = ("triton.jit", "jit", "triton.runtime.jit")
_IN_TEXT = re.compile(r"@triton\.jit[^\n]*\n\s*def\s+(\w+)")  # of kernels that the program makes by `exec`


def _detects(source: str) -> bool:
    return any(mark in source for mark in MARKS) and bool(_list_kernels(source))


def _list_kernels(source: str) -> tuple[str, ...]:
    """Functions decorated by or passed to `triton.jit`, under any name of the import."""
    return list_decorated(source, _DECORATORS) or tuple(_IN_TEXT.findall(source))


def _find_missing(emulated: bool) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # takes 20 ms

    try:
        found = version("triton")
    except PackageNotFoundError:
        return "Triton is not installed: install torch with CUDA, which includes it, or run: pip install triton"
    if emulated and tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < EMULATED_SINCE:
        return f"the emulated device needs Triton {'.'.join(map(str, EMULATED_SINCE))} or newer, found {found}"
    return None


TRITON = LanguageRules(
    name="triton",
    devices=("cuda", EMULATED),
    detects=_detects,
    list_kernels=_list_kernels,
    modules=frozenset(("triton",)),
    emulation_cost=10,
    find_missing=_find_missing,
)
