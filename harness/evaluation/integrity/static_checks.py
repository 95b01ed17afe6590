"""Checks a candidate's source. Text rules are easily evaded, so only a syntax error decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from harness.domain import Finding
from harness.syntax import parse_python, read_dotted_name

SUSPICIOUS_CALLS = {
    "sys._getframe": "walks the call stack",
    "inspect.stack": "walks the call stack",
    "inspect.currentframe": "walks the call stack",
    "gc.get_objects": "searches the process's objects",
    "gc.get_referrers": "searches the process's objects",
    "os._exit": "ends the process without cleaning up",
    "os.fork": "starts processes",
    "subprocess.run": "starts processes",
    "subprocess.Popen": "starts processes",
    "os.system": "starts processes",
    "exec": "runs code that is not in the source",
    "eval": "runs code that is not in the source",
    "compile": "runs code that is not in the source",
    "socket.socket": "opens a network connection",
    "ctypes.CDLL": "calls C functions directly",
    "threading.Thread": "starts threads from Python",
    "torch.cuda.Stream": "creates streams",
}
COMPILING_CALLS = dict.fromkeys(("torch.compile", "torch.jit.script"), "has torch's own compiler do the work")
LOADER = re.compile(r"(.*\.)?load_inline|(.*\.)?cpp_extension\.load")
# Operators of torch that can replace a custom kernel when an extension's source calls them.
TORCH_OPERATOR = re.compile(
    r"\b(?:at|torch)::(_?(?:mm|bmm|matmul|addmm|baddbmm|linear|einsum|softmax|log_softmax|scaled_dot_product_attention"
    r"|layer_norm|group_norm|batch_norm|rms_norm|cumsum|topk|sort|embedding|cross_entropy\w*|max_pool\dd|avg_pool\dd"
    r"|conv\w*|cudnn_\w+|mkldnn_\w+))\s*\("
)
# Formats narrower than a problem's, by its bits: attributes in Python, and words in C and C++.
_EIGHT_ATTRIBUTES, _EIGHT_TYPES = r"int8|float8\w*", r"int8_t|__nv_fp8\w*|at::kChar|torch::kInt8"
_HALF_TYPES = r"__half2?|half2|__nv_bfloat162?|(?:at|c10)::(?:Half|BFloat16)|tf32\w*"
NARROW_ATTRIBUTE = {
    16: re.compile(_EIGHT_ATTRIBUTES),
    32: re.compile(rf"{_EIGHT_ATTRIBUTES}|half|bfloat16|float16"),
}
NARROW_TYPE = {
    16: re.compile(rf"\b({_EIGHT_TYPES})\b"),
    32: re.compile(rf"\b({_EIGHT_TYPES}|{_HALF_TYPES})\b"),
}
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
MAX_FINDINGS = 100
MAX_NAME = 200
PATCHED_ROOTS = ("torch", "time", "sys", "builtins", "gc", "os")


def find_syntax_error(source: str) -> str | None:
    try:
        parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line}: {(getattr(error, 'text', None) or '').strip()[:120]})" if line else ""
        return f"{type(error).__name__}: {getattr(error, 'msg', error)}{where}"
    return None


def screen_source(source: str, *, may_compile: bool = False) -> tuple[Finding, ...]:
    """Warn about calls that legitimate kernels rarely need, and note calls that may leave the work to torch or a
    library.
    """
    tree = parse_python(source)
    calls = SUSPICIOUS_CALLS if may_compile else SUSPICIOUS_CALLS | COMPILING_CALLS
    warnings = (_report("warning", *place) for place in _suspicious_places(tree, calls))
    notes = (_report("note", *place) for place in _other_workers(tree))
    found: dict[str, Finding] = {}
    for finding in (*warnings, *notes):
        found.setdefault(finding.message, finding)
    return tuple(found.values())[:MAX_FINDINGS]


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


def _report(severity: Literal["note", "warning"], line: int, name: str, reason: str) -> Finding:
    return Finding(check="screen", severity=severity, message=f"{name[:MAX_NAME]} {reason}", evidence=f"line {line}")


def _other_workers(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for name in dict.fromkeys(TORCH_OPERATOR.findall(node.value)):
                yield node.lineno, f"at::{name}", "is called by a source: torch or a library does that work"
        if isinstance(node, ast.Try) and node.handlers:
            for name in filter(None, map(_called_loader, node.body)):
                yield node.lineno, name, "may fail without ending the program: there may be a fallback"


def _called_loader(statement: ast.stmt) -> str | None:
    calls = (read_dotted_name(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call))
    return next((name for name in calls if LOADER.fullmatch(name)), None)


def _suspicious_places(tree: ast.Module, calls: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = read_dotted_name(node.func)
            if name in calls:
                yield node.lineno, name, calls[name]
        for target in _targets(node):
            name = read_dotted_name(target)
            if "." in name and name.split(".")[0] in PATCHED_ROOTS and not name.startswith("torch.backends."):
                yield node.lineno if hasattr(node, "lineno") else 0, name, "is replaced by the candidate"


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []
