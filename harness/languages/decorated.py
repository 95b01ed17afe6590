"""Finds kernels that are decorated Python functions."""

from __future__ import annotations

import ast
from collections.abc import Collection

from harness.syntax import parse_python, read_dotted_name


def list_decorated(source: str, decorators: Collection[str]) -> tuple[str, ...]:
    """Return functions with one of these decorators, even with arguments, or passed to one."""
    try:
        nodes = list(ast.walk(parse_python(source)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and any(_is_one_of(one, decorators) for one in node.decorator_list):
            found[node.name] = None
        elif isinstance(node, ast.Call) and _is_one_of(node.func, decorators):
            found |= {argument.id: None for argument in node.args if isinstance(argument, ast.Name)}
    return tuple(found)


def _is_one_of(node: ast.expr, decorators: Collection[str]) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return read_dotted_name(called) in decorators
