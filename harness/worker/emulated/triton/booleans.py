"""`and`, `or` and `not` of blocks in a kernel: Triton applies them to each element, Python to the whole."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import ASTTransformer

_JOIN, _NEGATE = "_harness_join", "_harness_negate"
_VISITS_VALUES = hasattr(ASTTransformer, "visit_Compare")  # of assignments, since Triton 3.9


class BooleanTransformer(ASTTransformer):  # type: ignore[misc]
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        later = [ast.Lambda(args=nothing, body=self.visit(value)) for value in node.values]
        is_and = ast.Constant(value=isinstance(node.op, ast.And))
        return _call(_JOIN, [is_and, *later], node)

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:  # noqa: N802
        if not _VISITS_VALUES:
            node.value = self.visit(node.value)
        transformed: ast.Assign = super().visit_Assign(node)
        return transformed

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        node.operand = self.visit(node.operand)
        return _call(_NEGATE, [node.operand], node) if isinstance(node.op, ast.Not) else node


def install() -> None:
    """The interpreter gives its module's names to every kernel."""
    setattr(interpreter, _JOIN, _join)
    setattr(interpreter, _NEGATE, _negate)
    interpreter.FunctionRewriter.ast_transformer = BooleanTransformer()


def _call(name: str, arguments: list[ast.expr], node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=arguments, keywords=[]), node)


def _join(is_and: bool, *operands: Callable[[], Any]) -> Any:
    """As Triton compiles it: constants decide early, and tensors are all evaluated."""
    value, tensors = None, []
    for operand in operands:
        value = operand()
        if isinstance(value, tl.tensor):
            tensors.append(value)
        elif bool(value) is not is_and:
            return value
    if not tensors:
        return value
    result = tensors[0]
    for other in tensors[1:]:
        result = result.logical_and(other) if is_and else result.logical_or(other)
    return result


def _negate(value: Any) -> Any:
    return value == 0 if isinstance(value, tl.tensor) else not value
