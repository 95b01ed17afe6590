"""Parses Python source; `cpp` has a lexer of C++.

One thread parses at a time: in CPython 3.11 concurrent calls of `ast.parse` sometimes fail (SystemError: AST
constructor recursion depth mismatch).
"""

from __future__ import annotations

import ast
import threading

_LOCK = threading.Lock()


def parse_python(source: str, filename: str = "<unknown>") -> ast.Module:
    """Ignore a byte order mark. Raises SyntaxError, or ValueError for null bytes."""
    with _LOCK:
        return ast.parse(source.removeprefix("\ufeff"), filename=filename)


def read_dotted_name(node: ast.expr) -> str:
    """Return `a.b.c`, or "". Iterate, since nesting may exceed Python's stack."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
