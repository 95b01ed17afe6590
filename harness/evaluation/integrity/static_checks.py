"""Checks a candidate's source. Text rules are easily evaded, so only a syntax error decides."""

from __future__ import annotations

import ast
import re

from harness.domain import Finding
from harness.syntax import parse_python

# Formats narrower than a problem's, by its bits: attributes in Python, and words in C and C++.
_EIGHT_ATTRIBUTES, _EIGHT_TYPES = r"int8|float8\w*", r"int8_t|__nv_fp8\w*|at::kChar|torch::kInt8"
_HALF_TYPES = r"__half2?|half2|__nv_bfloat162?|(?:at|c10)::(?:Half|BFloat16)|tf32\w*"
NARROW_ATTRIBUTE = {16: re.compile(_EIGHT_ATTRIBUTES), 32: re.compile(rf"{_EIGHT_ATTRIBUTES}|half|bfloat16|float16")}
NARROW_TYPE = {16: re.compile(rf"\b({_EIGHT_TYPES})\b"), 32: re.compile(rf"\b({_EIGHT_TYPES}|{_HALF_TYPES})\b")}
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
MAX_NAME = 200


def find_syntax_error(source: str) -> str | None:
    try:
        parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line}: {(getattr(error, 'text', None) or '').strip()[:120]})" if line else ""
        return f"{type(error).__name__}: {getattr(error, 'msg', error)}{where}"
    return None


def warn_of_narrow_formats(source: str, reference: str, bits: int) -> tuple[Finding, ...]:
    """The tolerance of a problem in 32 or 16 bits may accept narrower formats than its author would."""
    known = _find_narrow_formats(reference, bits)
    names = ", ".join(name for name in _find_narrow_formats(source, bits) if name not in known)[:MAX_NAME]
    message = f"the problem is in {bits} bits, and the program names {names}: it may compute with fewer digits"
    return (Finding(check="narrow_format", severity="warning", message=message),) if names else ()


def _find_narrow_formats(source: str, bits: int) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for node in ast.walk(parse_python(source)):
        if isinstance(node, ast.Attribute) and NARROW_ATTRIBUTE[bits].fullmatch(node.attr):
            found[node.attr] = None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= dict.fromkeys(NARROW_TYPE[bits].findall(C_COMMENT.sub(" ", node.value)))
    return tuple(found)
