"""Static screening of a candidate's source: findings for whoever reads the verdict, and nothing more.

Text rules are easily fooled, so behaviour decides; only a program that does not parse ends here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.domain import Finding

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
    "torch.compile": "has torch's own compiler do the work",
    "torch.jit.script": "has torch's own compiler do the work",
    "socket.socket": "opens a network connection",
    "ctypes.CDLL": "calls C functions directly",
    "threading.Thread": "starts threads from Python",
    "torch.cuda.Stream": "makes its own streams",
}
PATCHED_ROOTS = ("torch", "time", "sys", "builtins", "gc", "os")


def find_syntax_error(source: str) -> str | None:
    """Why the source is not a program, with its line, or None."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line}: {(getattr(error, 'text', None) or '').strip()[:120]})" if line else ""
        return f"{type(error).__name__}: {getattr(error, 'msg', error)}{where}"
    return None


def screen_source(source: str) -> tuple[Finding, ...]:
    """Warnings about calls and assignments that an honest kernel seldom needs. The source parses."""
    found: dict[str, Finding] = {}
    for line, name, reason in _suspicious_places(ast.parse(source)):
        finding = Finding(check="screen", severity="warning", message=f"{name} {reason}", evidence=f"line {line}")
        found.setdefault(finding.message, finding)
    return tuple(found.values())


def _suspicious_places(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
            if name in SUSPICIOUS_CALLS:
                yield node.lineno, name, SUSPICIOUS_CALLS[name]
        for target in _targets(node):
            name = _dotted(target)
            if "." in name and name.split(".")[0] in PATCHED_ROOTS and not name.startswith("torch.backends."):
                yield node.lineno if hasattr(node, "lineno") else 0, name, "is replaced by the candidate"


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        outer = _dotted(node.value)
        return f"{outer}.{node.attr}" if outer else ""
    return ""
