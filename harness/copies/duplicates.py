"""Recognises programs that differ only in layout, comments and docstrings."""

from __future__ import annotations

import ast
import re
import warnings
from contextlib import suppress
from hashlib import sha256

from harness.syntax import parse_python
from harness.syntax.cpp import tokenize


def normalise(source: str) -> str:
    """Return a digest of the syntax tree, or of the text if it does not parse."""
    return sha256(_normalise_text(source).encode("utf-8", "surrogatepass")).hexdigest()


def _normalise_text(source: str) -> str:
    tree = parse(source)
    if tree is not None:
        with suppress(RecursionError):  # nested too deeply
            return ast.dump(Normaliser().visit(tree))
    return " ".join(source.split())


def is_reference_copy(source: str, reference: str) -> bool:
    """True if `ModelNew` is the reference's `Model`, or a subclass that adds nothing. False for expressions that are
    too deeply nested to compare.
    """
    tree, original = parse(source), parse(reference)
    if tree is None or original is None:
        return False
    copies, models = _find_classes(tree, "ModelNew"), _find_classes(original, "Model")
    if not copies or not models:
        return False
    if all(isinstance(statement, ast.Pass) for statement in drop_docstring(copies[-1].body)):
        return any(isinstance(base, ast.Name) and base.id == "Model" for base in copies[-1].bases)
    try:
        return _dump_body(copies[-1]) == _dump_body(models[-1])
    except RecursionError:
        return False


class Normaliser(ast.NodeTransformer):
    """Removes docstrings, and comments and white space of long strings, which may be kernels."""

    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = drop_docstring(node.body)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self.holds_code(node.value):
            return ast.Constant(value=self.squeeze(node.value))
        return node

    def holds_code(self, text: str) -> bool:
        return "\n" in text

    def squeeze(self, code: str) -> str:
        text = "".join(" " if token.kind == "comment" else token.text for token in tokenize(code))
        lines = [" ".join(line.split()) for line in text.splitlines()]
        return "\n".join(line for line in lines if line)


def drop_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_docstring else body


def _dump_body(node: ast.ClassDef) -> str:
    body = ast.Module(body=parse_python(ast.unparse(node)).body[0].body, type_ignores=[])  # type: ignore[attr-defined]
    return re.sub(r"\b(ModelNew|Model)\b", "Model", ast.dump(Normaliser().visit(body)))


def _find_classes(tree: ast.Module, name: str) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name]


def parse(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            return parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
