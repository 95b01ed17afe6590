"""Parses Python source; `cpp` has a lexer of C++.

One thread parses at a time: in CPython 3.11 concurrent calls of `ast.parse` sometimes fail (SystemError: AST
constructor recursion depth mismatch).
"""

import ast
import threading
import warnings
from collections.abc import Iterator, Sequence

_LOCK = threading.Lock()


def parse_python(source: str, filename: str = "<unknown>") -> ast.Module:
    """Ignore a byte order mark. Raises SyntaxError, or ValueError for null bytes."""
    with _LOCK:
        return ast.parse(source.removeprefix("\ufeff"), filename=filename)


def explain_syntax_error(error: Exception, where: str) -> str:
    """`error` is one that `parse_python` raises."""
    line, reason = getattr(error, "lineno", None) or "?", getattr(error, "msg", error)
    return f"{where}, line {line}: expected Python: {reason}"


def try_parse(source: str) -> ast.Module | None:
    """Print no warnings, such as those of invalid escapes in strings."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return parse_python(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def is_docstring(statement: ast.stmt) -> bool:
    """True for every statement that is a constant."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def find_first_line(statement: ast.stmt, lines: Sequence[str]) -> int:
    """Include decorators and the comment above. The line is 0-based."""
    first: int = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))]) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return first


def read_dotted_name(node: ast.expr) -> str:
    """Return `a.b.c`, or "". Iterate, since nesting may exceed Python's stack."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def list_assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield names with their values; what is taken apart at run time is the value of each name."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _pair(statement.target, statement.value)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _pair(target, statement.value)


def _pair(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        is_plain = len(parts) == len(target.elts) and not any(isinstance(one, ast.Starred) for one in parts)
        for inner, assigned in zip(target.elts, parts if is_plain else [value] * len(target.elts), strict=True):
            yield from _pair(inner, assigned)
