"""What a candidate's Python asks of a GPU that the emulated device cannot do. Reads the source; runs nothing.

What its CUDA sources use is found where they are built. Here it is other compilers of kernels, and CUDA graphs.
"""

from __future__ import annotations

import ast

from harness.domain import Outcome
from harness.sandbox.failure import CandidateFailure

MODULES = frozenset(("triton", "cupy", "numba", "pycuda", "cuda", "cutlass", "tilelang", "tvm", "warp"))
ATTRIBUTES = frozenset(("CUDAGraph", "make_graphed_callables", "_compile_kernel"))


def find_uncovered(source: str) -> str | None:
    """The first such construct with its line, as `line 3: import triton`; None if there is none."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return None
    found = [(node.lineno, name) for node in nodes if isinstance(node, ast.stmt | ast.expr) for name in _name(node)]
    return "line {}: {}".format(*min(found)) if found else None


def excuse_unsupported(source: str, failure: CandidateFailure) -> None:
    """Raises CandidateFailure (not_run) if the failed source uses an unsupported construct. Reads the source only,
    since the worker's messages are untrusted."""
    construct = find_uncovered(source)
    if construct is not None and failure.outcome in (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR):
        message = f"{construct} is not covered by the emulated device: {failure.message}"
        raise CandidateFailure(Outcome.NOT_RUN, message, failure.findings) from failure


def _name(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [f"import {alias.name}" for alias in node.names if alias.name.split(".")[0] in MODULES]
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
        return [f"import {node.module}"]
    if isinstance(node, ast.Attribute) and (node.attr in ATTRIBUTES or ast.unparse(node) == "torch.cuda.graph"):
        return [ast.unparse(node)]
    return []
