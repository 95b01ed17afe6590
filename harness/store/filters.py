"""Compiles `--where 'outcome == "correct" and speedup > 1.2'` to SQL.

The condition is parsed as Python, never executed; values become parameters. A comparison with a missing value is false
(so `not speedup > 1` matches rows without a speedup); `speedup is None` selects them.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Mapping
from typing import Literal

from harness.domain import UsageError
from harness.domain.suggestions import explain_unknown

Kind = Literal["text", "number"]
Value = str | float
_Sql = tuple[str, tuple[Value, ...]]

LONGEST_CONDITION = 2_000  # characters; SQLite supports about 1000 terms
DEEPEST_CONDITION = 20  # below the limit of SQLite's parser for nested parentheses
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="
}  # fmt: skip
_EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_KIND_NAMES: dict[Kind, str] = {"text": "string", "number": "number"}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_GRAMMAR = (
    "write comparisons (== != < <= > >=, in, is None) of columns with quoted strings and numbers, joined by and, or, "
    'not; like(model, "gpt*") matches a pattern'
)


def compile_condition(text: str, columns: Mapping[str, Kind]) -> _Sql:
    """Return (SQL condition on the table `e`, parameters). Raises UsageError."""
    if len(text) > LONGEST_CONDITION:
        raise UsageError(f"--where is {len(text):,} characters long; at most {LONGEST_CONDITION:,} are read")
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes in string literals
            tree = ast.parse(text.strip(), mode="eval").body
        if _measure_depth(tree) > DEEPEST_CONDITION:
            raise UsageError(f"--where is nested more than {DEEPEST_CONDITION} levels deep: write it flatter")
        return _Compiler(text.strip(), columns).compile_truth(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        raise UsageError(f"--where {text!r} cannot be read ({reason}): {_GRAMMAR}") from error


def list_compared(text: str, columns: Mapping[str, Kind]) -> list[tuple[str, str]]:
    """Return (column, text) of the equalities and memberships in a valid condition, negated ones included."""
    found = []
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if isinstance(node, ast.Compare) and all(isinstance(op, _EQUALITIES) for op in node.ops):
            sides = [part for side in (node.left, *node.comparators) for part in getattr(side, "elts", [side])]
            names = [one.id for one in sides if isinstance(one, ast.Name) and columns.get(one.id) == "text"]
            texts = [one.value for one in sides if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            found += [(name, value) for name in names for value in texts]
    return found


class _Compiler:
    def __init__(self, text: str, columns: Mapping[str, Kind]) -> None:
        self._text = text
        self._columns = columns

    def compile_truth(self, node: ast.expr) -> _Sql:
        if isinstance(node, ast.BoolOp):
            return _join(" AND " if isinstance(node.op, ast.And) else " OR ", [*map(self.compile_truth, node.values)])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            text, values = self.compile_truth(node.operand)
            return f"NOT {text}", values
        if isinstance(node, ast.Compare):
            return self._compile_comparison(node)
        if isinstance(node, ast.Call):
            return self._compile_pattern(node)
        raise self._refuse(node, "is not a condition")

    def _compile_comparison(self, node: ast.Compare) -> _Sql:
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        return _join(" AND ", [self._compare(left, op, right) for left, op, right in pairs])

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Sql:
        if isinstance(op, ast.In | ast.NotIn):
            return self._compile_membership(left, right, negated=isinstance(op, ast.NotIn))
        if _is_none(right) or _is_none(left):
            return self._compile_missing(left if _is_none(right) else right, op)
        if type(op) not in _COMPARISONS:
            raise self._refuse(right, "cannot follow `is`: only None can")
        first, second = self._compile_value(left), self._compile_value(right)
        self._check_kinds([left, right])
        return f"coalesce({first[0]} {_COMPARISONS[type(op)]} {second[0]}, 0)", first[1] + second[1]

    def _compile_missing(self, node: ast.expr, op: ast.cmpop) -> _Sql:
        text, values = self._compile_value(node)
        if isinstance(op, ast.Is | ast.Eq):
            return f"({text} IS NULL)", values
        if isinstance(op, ast.IsNot | ast.NotEq):
            return f"({text} IS NOT NULL)", values
        raise self._refuse(node, "cannot be ordered relative to None")

    def _compile_membership(self, left: ast.expr, right: ast.expr, *, negated: bool) -> _Sql:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set) or not right.elts:
            raise self._refuse(right, 'is not a list: write outcome in ("correct", "timeout")')
        parts = [self._compile_value(node) for node in (left, *right.elts)]
        self._check_kinds([left, *right.elts])
        marks = ", ".join(text for text, _ in parts[1:])
        found = f"coalesce({parts[0][0]} IN ({marks}), 0)"
        return f"NOT {found}" if negated else found, tuple(value for _, values in parts for value in values)

    def _compile_pattern(self, node: ast.Call) -> _Sql:
        if not isinstance(node.func, ast.Name) or node.func.id != "like" or len(node.args) != 2 or node.keywords:
            raise self._refuse(node, 'cannot be called: the only function is like(column, "pattern*")')
        for argument in node.args:
            if self._find_kind(argument) != "text":
                raise self._refuse(argument, "is not a string, as like() requires")
        column, pattern = map(self._compile_value, node.args)
        return f"coalesce({column[0]} GLOB {pattern[0]}, 0)", column[1] + pattern[1]

    def _compile_value(self, node: ast.expr) -> _Sql:
        if isinstance(node, ast.Name):
            return self._compile_name(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return "?", (self._read_constant(node),)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and self._find_kind(node) == "number":
            text, values = self._compile_value(node.operand)
            return f"(-{text})", values
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return self._compile_arithmetic(node)
        raise self._refuse(node, "is not supported")

    def _compile_arithmetic(self, node: ast.BinOp) -> _Sql:
        for side in (node.left, node.right):
            if self._find_kind(side) != "number":
                raise self._refuse(side, "is no number, and only numbers can be calculated with")
        left, right = self._compile_value(node.left), self._compile_value(node.right)
        # 1.0 * x: a division of integers would be rounded.
        return f"(1.0 * {left[0]} {_ARITHMETIC[type(node.op)]} {right[0]})", left[1] + right[1]

    def _compile_name(self, node: ast.Name) -> _Sql:
        if node.id in self._columns:
            return f"e.{node.id}", ()
        unknown = explain_unknown("column", node.id, self._columns)
        raise UsageError(f'--where: {unknown}, or if it is a text, write "{node.id}"')

    def _read_constant(self, node: ast.Constant) -> Value:
        value = node.value
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if isinstance(value, int) and abs(value) >= 2**63:
            raise self._refuse(node, "is too large a number")
        assert isinstance(value, int | float)
        return value

    def _check_kinds(self, nodes: Collection[ast.expr]) -> None:
        kinds = [self._find_kind(node) for node in nodes]
        if len(set(kinds)) > 1:
            parts = (f"{ast.unparse(node)} is a {_KIND_NAMES[kind]}" for node, kind in zip(nodes, kinds, strict=True))
            raise UsageError(f"--where compares a string with a number: {', '.join(parts)}")

    def _find_kind(self, node: ast.expr) -> Kind:
        if isinstance(node, ast.Name):
            self._compile_name(node)
            return self._columns[node.id]
        return "text" if isinstance(node, ast.Constant) and isinstance(node.value, str) else "number"

    def _refuse(self, node: ast.expr, reason: str) -> UsageError:
        part = ast.get_source_segment(self._text, node) or ast.unparse(node)
        return UsageError(f"--where: {part!r} {reason}; {_GRAMMAR}. Columns: {', '.join(self._columns)}")


def _join(word: str, parts: list[_Sql]) -> _Sql:
    return f"({word.join(text for text, _ in parts)})", tuple(value for _, values in parts for value in values)


def _measure_depth(node: ast.AST) -> int:
    return 1 + max(map(_measure_depth, ast.iter_child_nodes(node)), default=0)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
