"""Tells whether a program sets environment variables that compilers in Python read."""

import re

# Changes of environment variables, but for those with names that compilers in Python do not read.
_READ_BY_COMPILERS = (
    r"(?!TORCH_CUDA_ARCH_LIST|TORCH_EXTENSIONS_DIR)(TORCH|TRITON|LLVM|MLIR|PTXAS|NVPTX|DISABLE|ENABLE|USE)"
)
_ENVIRONMENT = re.compile(
    rf"""\bputenv\b|(?<!\bin os\.)\benviron\b(?!\.get\b|(\[|\.setdefault\()\s*["'](?!{_READ_BY_COMPILERS})\w)"""
)


def may_change_compilers(source: str) -> bool:
    """Return whether a program may set environment variables that compilers in Python read when they are imported."""
    return _ENVIRONMENT.search(source) is not None
