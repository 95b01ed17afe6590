"""Rewrites syntax that Triton compiles differently: `and`, `or`, `not`, `min`, `max`; loop counters become tensors."""

import ast
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.core import _unwrap_if_constexpr as unwrap
from triton.runtime import interpreter
from triton.runtime.interpreter import ASTTransformer, TensorHandle

from harness.worker.emulated.triton.arithmetic import find_numpy_dtype

_JOIN, _NEGATE, _ASSIGN, _FIND = "_harness_join", "_harness_negate", "_harness_assign", "_harness_find"
_VISITS_VALUES = hasattr(ASTTransformer, "visit_Compare")  # of assignments, since Triton 3.9


class KernelTransformer(ASTTransformer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._constants: set[str] = set()  # declared as constexpr, and assigned later

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        later = [ast.Lambda(args=nothing, body=self.visit(value)) for value in node.values]
        is_and = ast.Constant(value=isinstance(node.op, ast.And))
        return _call(_JOIN, [is_and, *later], node)

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:  # noqa: N802
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in self._constants:
            self._constants.discard(target.id)
            self.generic_visit(node)
            return node
        value = node.value if _VISITS_VALUES else self.visit(node.value)
        node.value = _call(_ASSIGN, [value], value)
        transformed: ast.Assign = super().visit_Assign(node)
        return transformed

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        is_constant = ast.unparse(node.annotation).endswith("constexpr")
        if node.value is None and is_constant and isinstance(node.target, ast.Name):
            self._constants.add(node.target.id)
        if node.value is not None and not is_constant:
            node.value = _call(_ASSIGN, [node.value], node.value)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:  # noqa: N802
        node.value = _call(_ASSIGN, [self.visit(node.value)], node.value)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        node.operand = self.visit(node.operand)
        return _call(_NEGATE, [node.operand], node) if isinstance(node.op, ast.Not) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("range", "min", "max"):
            node.func = _call(_FIND, [node.func], node.func)
        return node


def install() -> None:
    """Extend the interpreter's module, whose names every kernel receives."""
    functions = {_JOIN: _join, _NEGATE: _negate, _ASSIGN: _assign, _FIND: lambda one: _BUILTINS.get(one, one)}
    for name, function in functions.items():
        setattr(interpreter, name, function)
    interpreter.FunctionRewriter.ast_transformer = KernelTransformer()


def count_up(first: Any, end: Any = None, step: Any = 1, **_: Any) -> Iterator[Any]:
    """Implement `range` and `tl.range`, whose other arguments are hints."""
    semantic = interpreter.interpreter_semantic
    bounds = [semantic.to_tensor(unwrap(one)) for one in ((0, first) if end is None else (first, end))]
    kind = semantic.integer_promote_impl(bounds[0].dtype, bounds[1].dtype)
    kind = semantic.integer_promote_impl(kind, semantic.to_tensor(unwrap(step)).dtype)
    for number in range(int(bounds[0]), int(bounds[1]), int(unwrap(step))):
        yield tl.tensor(TensorHandle(np.array([number]).astype(find_numpy_dtype(kind)), kind), kind)


def _call(name: str, arguments: list[ast.expr], node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=arguments, keywords=[]), node)


def _assign(value: Any) -> Any:
    if type(value) in (tuple, tl.tuple):
        return type(value)(tuple(_assign(one) for one in value))
    return interpreter.interpreter_semantic.to_tensor(value, False)


def _choose(usual: Callable[..., Any], name: str) -> Callable[..., Any]:
    def choose(*values: Any, **options: Any) -> Any:
        if not any(isinstance(value, tl.tensor) for value in values):
            return usual(*map(unwrap, values), **options)
        return functools.reduce(getattr(tl, name), values)

    return choose


_BUILTINS = {range: count_up, min: _choose(min, "minimum"), max: _choose(max, "maximum")}


def _join(is_and: bool, *operands: Callable[[], Any]) -> Any:
    """Decide early by constants only and evaluate all tensors, like Triton's compiler."""
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
