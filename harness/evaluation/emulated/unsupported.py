"""Finds Python constructs that the emulated device does not support: other kernel compilers, CUDA graphs."""

from __future__ import annotations

import ast

from harness.domain import Outcome
from harness.languages import LANGUAGES
from harness.sandbox.failure import CandidateFailure
from harness.syntax import parse_python

OTHER_COMPILERS = ("cupy", "numba", "pycuda", "cuda", "warp")
MODULES = frozenset(OTHER_COMPILERS).union(*(rules.modules for rules in LANGUAGES.values()))
ATTRIBUTES = frozenset(("CUDAGraph", "make_graphed_callables", "_compile_kernel"))


def find_uncovered(source: str, covered: frozenset[str] = frozenset()) -> str | None:
    """Return the first unsupported construct, such as `line 3: import cupy`. The language provides the modules
    `covered`.
    """
    try:
        nodes = list(ast.walk(parse_python(source)))
    except (SyntaxError, ValueError):
        return None
    found = [
        (node.lineno, name)
        for node in nodes
        if isinstance(node, ast.stmt | ast.expr)
        for name in _name(node, MODULES - covered)
    ]
    return "line {}: {}".format(*min(found)) if found else None


def excuse_unsupported(source: str, failure: CandidateFailure, covered: frozenset[str] = frozenset()) -> None:
    """Raises CandidateFailure (not_run) if the source uses such a construct; the worker's messages are untrusted."""
    construct = find_uncovered(source, covered)
    if construct is not None and failure.outcome in (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR):
        message = f"{construct} is not covered by the emulated device: {failure.message}"
        raise CandidateFailure(Outcome.NOT_RUN, message, failure.findings) from failure


def _name(node: ast.AST, modules: frozenset[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [f"import {alias.name}" for alias in node.names if alias.name.split(".")[0] in modules]
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in modules:
        return [f"import {node.module}"]
    if isinstance(node, ast.Attribute) and (node.attr in ATTRIBUTES or ast.unparse(node) == "torch.cuda.graph"):
        return [ast.unparse(node)]
    return []
