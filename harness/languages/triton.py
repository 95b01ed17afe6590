"""Triton kernels: Python functions that Triton compiles at their first launch."""

from __future__ import annotations

import ast
import re

from harness.domain import EMULATED
from harness.languages.rules import LanguageRules
from harness.syntax import parse_python

EMULATED_SINCE = (3, 9)  # of its interpreter
MARKS = ("triton.jit", "from triton import")
_IN_TEXT = re.compile(r"@triton\.jit[^\n]*\n\s*def\s+(\w+)")  # of kernels that the program makes by `exec`


def _detects(source: str) -> bool:
    return any(mark in source for mark in MARKS) and bool(_list_kernels(source))


def _list_kernels(source: str) -> tuple[str, ...]:
    """Functions decorated by `triton.jit`, under any name of the import, or passed to it."""
    try:
        nodes = list(ast.walk(parse_python(source)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list)):
            found[node.name] = None
        elif isinstance(node, ast.Call) and _is_jit(node.func):
            found |= {argument.id: None for argument in node.args if isinstance(argument, ast.Name)}
    return tuple(found) or tuple(_IN_TEXT.findall(source))


def _is_jit(node: ast.expr) -> bool:
    """`triton.jit`, `jit`, and both with arguments."""
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called) in ("triton.jit", "jit", "triton.runtime.jit")


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
    refuses=lambda request: None,
    list_kernels=_list_kernels,
    modules=frozenset(("triton",)),
    emulation_cost=10,
    find_missing=_find_missing,
)
