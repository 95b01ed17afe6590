"""Recognises programs that differ only in layout, comments and docstrings."""

from __future__ import annotations

import ast
import re
import warnings
from hashlib import sha256

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def normalise(source: str) -> str:
    """A digest of the syntax tree; of the text where it does not parse."""
    tree = _parse(source)
    text = " ".join(source.split()) if tree is None else ast.dump(_Normaliser().visit(tree))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_reference_copy(source: str, reference: str) -> bool:
    """Whether `ModelNew` is the reference's `Model`, or a subclass that adds nothing."""
    tree, original = _parse(source), _parse(reference)
    if tree is None or original is None:
        return False
    copies, models = _find_classes(tree, "ModelNew"), _find_classes(original, "Model")
    if not copies or not models:
        return False
    if all(isinstance(statement, ast.Pass) for statement in _drop_docstring(copies[-1].body)):
        return any(isinstance(base, ast.Name) and base.id == "Model" for base in copies[-1].bases)
    return _dump_body(copies[-1]) == _dump_body(models[-1])


class _Normaliser(ast.NodeTransformer):
    """Without docstrings; long strings without comments and white space: kernels."""

    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = _drop_docstring(node.body)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            return ast.Constant(value=_squeeze(node.value))
        return node


def _squeeze(code: str) -> str:
    """Line ends remain where a preprocessor directive needs them."""
    lines = [" ".join(line.split()) for line in _COMMENT.sub(" ", code).splitlines()]
    return "\n".join(line for line in lines if line)


def _drop_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_docstring else body


def _dump_body(node: ast.ClassDef) -> str:
    body = ast.Module(body=ast.parse(ast.unparse(node)).body[0].body, type_ignores=[])  # type: ignore[attr-defined]
    return re.sub(r"\b(ModelNew|Model)\b", "Model", ast.dump(_Normaliser().visit(body)))


def _find_classes(tree: ast.Module, name: str) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name]


def _parse(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
