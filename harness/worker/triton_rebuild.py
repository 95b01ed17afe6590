"""Compiles a described Triton kernel again, in a process without the program. Descriptions are untrusted: only what a
kernel may name is looked up, and the text is compiled by Triton but never called.
"""

import ast
import importlib
import linecache
import os
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import triton
from triton import language
from triton.backends.compiler import GPUTarget
from triton.language import core
from triton.runtime import jit

from harness.worker.triton_compilations import OPTIONS, REPEATABLE, is_public, read_environment

MOST_LINES = 1_000_000  # before a function in its file
_CALLABLE = getattr(jit, "JITCallable", jit.JITFunction)  # another name in older versions
_CLASSES = (core.tensor, core.dtype, core.pointer_type, core.block_type, core.tuple, core.constexpr, str)
# Of values: what a module has is looked up instead.
_ATTRIBUTES = frozenset(name for one in _CLASSES for name in dir(one) if not name.startswith("_")) | {
    "shape", "dtype", "type", "value", "T", "desc", "strides", "block_shape", "load", "store", "gather", "scatter",
    "element_ty", "scalar", "name", "primitive_bitwidth", "int_bitwidth",
}  # fmt: skip
_IN_HEAD = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.USub, ast.Load)
_HIDDEN = ("getattr", "hasattr")


class Refused(Exception):
    """The message is the reason."""


def compile_again(described: dict[str, Any]) -> bytes:
    """Return the code. Raises Refused, and whatever Triton raises."""
    os.environ |= REPEATABLE
    if described["environment"] != read_environment():
        raise Refused("environment variables that change code are set")
    if not described["options"].keys() <= OPTIONS:
        raise Refused("an option that cannot be repeated")
    functions = _Functions(described)
    source = triton.compiler.ASTSource(
        fn=functions.build(0),
        signature={name: functions.decode(value) for name, value in described["signature"].items()},
        constexprs={tuple(path): functions.decode(value) for path, value in described["constants"]},
        attrs={tuple(path): value for path, value in described["attributes"]},
    )
    options = {name: functions.decode(value) for name, value in described["options"].items()}
    code: bytes = triton.compile(source, target=GPUTarget(*described["target"]), options=options).asm["cubin"]
    return code


class _Functions:
    def __init__(self, described: dict[str, Any]) -> None:
        self._described = described["functions"]
        self._kernel = str(described["name"])
        self._built: dict[int, Any] = {}

    def build(self, at: int) -> Any:
        if at not in self._built:
            self._built[at] = None  # until it is complete
            self._built[at] = self._build(self._described[at], is_kernel=at == 0)
        if self._built[at] is None:
            raise Refused("a function that calls itself")
        return self._built[at]

    def _build(self, facts: dict[str, Any], *, is_kernel: bool) -> Any:
        scope = {name: self.decode(value) for name, value in facts["scope"].items()}
        text, line = facts["text"], facts["line"]
        if not 0 < line < MOST_LINES:
            raise Refused(f"line {line}")
        function = _define(text, line, facts["file"], scope)
        function.__module__, function.__qualname__ = facts["module"], facts["qualified"]
        lines = ["\n"] * (line - 1) + text.splitlines(keepends=True)
        linecache.cache[facts["file"]] = len(text), None, lines, facts["file"]
        named = (lambda _: self._kernel) if is_kernel else None
        kernel = triton.jit(function, noinline=facts["noinline"], repr=named)
        if kernel.src != textwrap.dedent(text):
            raise Refused("Triton reads another text")
        _Check(scope).check(*ast.parse(kernel.src).body)
        return kernel

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        decoders: dict[str, Callable[[Any], Any]] = {
            "float": float.fromhex,
            "tuple": lambda ones: tuple(self.decode(one) for one in ones),
            "constexpr": lambda one: language.constexpr(self.decode(one)),
            "dtype": language.dtype,
            "function": self.build,
            "module": _import,
            "public": lambda named: _require_safe(getattr(_import(named[0]), named[1], None)),
        }
        return decoders[kind](content)


def _define(text: str, line: int, file: str, scope: dict[str, Any]) -> Any:
    """Make the function as if it stood there. Its head, which is executed, is checked."""
    if text[:1].isspace():
        tree = ast.parse("\n" * (line - 2) + "if 1:\n" + text)
        body = tree.body[0].body if isinstance(tree.body[0], ast.If) else []
    else:
        tree = ast.parse("\n" * (line - 1) + text)
        body = tree.body
    if len(tree.body) != 1 or len(body) != 1:
        raise Refused("more than a function")
    _Check(scope).check(body[0])
    defined: dict[str, Any] = {}
    exec(compile(tree, file, "exec", dont_inherit=True), {**scope, "__builtins__": {}}, defined)
    ((_, function),) = defined.items()
    return function


def _import(name: str) -> ModuleType:
    if not is_public(name):
        raise Refused(f"the module {name}")
    return importlib.import_module(name)


def _require_safe(value: Any) -> Any:
    """Raises Refused for what does more, called by Triton, than to write code of the kernel."""
    module = getattr(value, "__module__", None) or ""
    is_safe = (
        value is None
        or core.is_builtin(value)
        or isinstance(value, (_CALLABLE, core.dtype, core.constexpr, bool, int, float, str))
        or (isinstance(value, type) and is_public(module))
        or module in ("math", "triton.language.extra.libdevice")
    )
    if not is_safe:
        raise Refused(f"{value!r} in a kernel")
    return value


class _Check(ast.NodeVisitor):
    """Raises Refused where the text of a kernel could reach more than Triton's language."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self._scope = scope

    def check(self, definition: ast.stmt) -> None:
        if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
            raise Refused("no plain function")
        arguments = definition.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        heads = [*arguments.defaults, *arguments.kw_defaults, definition.returns]
        heads += [one.annotation for one in every if one is not None]
        if not all(isinstance(node, _IN_HEAD) for head in heads if head is not None for node in ast.walk(head)):
            raise Refused("a default value or an annotation that is computed")
        self.visit(definition)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in _HIDDEN or node.id.startswith("__") or isinstance(self._scope.get(node.id), ModuleType):
            raise Refused(f"{node.id} in a kernel")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        found = self._look_up(node)
        if found is not None:
            _require_safe(found)
        elif node.attr in _ATTRIBUTES:
            self.visit(node.value)
        else:
            raise Refused(f"the attribute {node.attr} in a kernel")

    def _look_up(self, node: ast.expr) -> Any:
        """Return what a name with attributes means that begins with a module, or None."""
        if isinstance(node, ast.Name):
            found = self._scope.get(node.id)
            return found if isinstance(found, ModuleType) else None
        owner = self._look_up(node.value) if isinstance(node, ast.Attribute) else None
        if not isinstance(owner, ModuleType) or not isinstance(node, ast.Attribute) or node.attr.startswith("_"):
            return None
        if not is_public(owner.__name__):
            raise Refused(f"the module {owner.__name__}")
        return getattr(owner, node.attr, None)
