"""Binds a CUDA candidate without torch's headers, if all prototypes are plain.

The generated file is rewritten against a declaration of `at::Tensor` of the same size; `BINDING_SOURCE`, compiled once,
converts arguments, errors and docstrings.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.builder.fast import read_header
from harness.domain import BuildRequest

OBJECT = "binding.o"
# Of the binding object and of what is linked with it.
FUNCTION = """
#pragma GCC visibility push(hidden)
struct HarnessFunction { const char* name; const char* doc; const char* result; const char* parameters;
                         void (*call)(void**, void*); };
extern const HarnessFunction harness_functions[];
extern "C" void* harness_open(const char*);
#pragma GCC visibility pop
"""
_PARAMETERS = {
    "torch::Tensor": "t", "at::Tensor": "t", "const torch::Tensor": "t", "const at::Tensor": "t",
    "torch::Tensor&": "r", "at::Tensor&": "r", "const torch::Tensor&": "c", "const at::Tensor&": "c",
    "torch::Tensor const&": "c", "at::Tensor const&": "c",
    "int64_t": "l", "long": "l", "int": "i", "double": "d", "float": "f", "bool": "b",
    "const int64_t": "l", "const long": "l", "const int": "i", "const double": "d", "const float": "f",
    "const bool": "b",
}  # fmt: skip
# Types that are moved, or passed as const references.
_CLASSES = {"o": "std::optional<at::Tensor>", "T": "std::vector<at::Tensor>", "I": "std::vector<long>"}
_REFERENCES = {"p": "o", "V": "T", "J": "I"}
_CLASS_NAMES = {
    **{
        f"{space}::optional<{tensor}>": "o"
        for space in ("std", "torch", "c10", "at")
        for tensor in ("at::Tensor", "torch::Tensor")
    },
    "std::vector<at::Tensor>": "T",
    "std::vector<torch::Tensor>": "T",
    "std::vector<int64_t>": "I",
}
_PARAMETERS |= _CLASS_NAMES
_PARAMETERS |= {
    form.format(name): code
    for code, kind in _REFERENCES.items()
    for name in _CLASS_NAMES
    if _CLASS_NAMES[name] == kind
    for form in ("const {}&", "{}const&")
}
_RESULTS = {
    "torch::Tensor": "t", "at::Tensor": "t", "void": "v", "int64_t": "l", "long": "l", "int": "i", "double": "d",
    "float": "f", "bool": "b",
    "std::vector<torch::Tensor>": "L", "std::vector<at::Tensor>": "L",
}  # fmt: skip
_C_TYPES = {
    "t": "at::Tensor", "r": "at::Tensor&", "c": "const at::Tensor&", "v": "void", "l": "long", "i": "int",
    "d": "double", "f": "float", "b": "bool", "L": "std::vector<at::Tensor>",
    **_CLASSES, **{code: f"const {_CLASSES[kind]}&" for code, kind in _REFERENCES.items()},
}  # fmt: skip
_HARMLESS_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*<(torch/(extension|types|all|torch)\.h|vector|cstdint|string|optional)>[ \t]*$", re.M
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PROTOTYPE = re.compile(r"(?:extern )?(.+?[ >])(\w+) ?\((.*)\)", re.DOTALL)
_KEYWORDS = frozenset({
    "long", "int", "double", "float", "bool", "const", "unsigned", "char", "short", "void", "signed", "auto", "Tensor",
    "int64_t",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Prototype:
    name: str
    result: str
    parameters: tuple[str, ...]


def write_binding(request: BuildRequest) -> str | None:
    if not (request.functions and request.with_pytorch_error_handling and request.is_python_module):
        return None
    prototypes = _read_prototypes("\n".join(request.cpp_sources))
    if prototypes is None:
        return None
    by_name = {prototype.name: prototype for prototype in prototypes}
    if len(by_name) != len(prototypes) or any(name not in by_name for name, _ in request.functions):
        return None
    if any(not escapes_nothing(text) for pair in request.functions for text in pair):
        return None
    rows = [_write_row(by_name[name], docstring) for name, docstring in request.functions]
    return "\n".join(
        [
            FUNCTION,
            _HEAD,
            *(map(_declare, prototypes)),
            *map(_write_thunk, by_name.values()),
            write_module(request.name, rows),
        ]
    )


def exports_nothing(request: BuildRequest) -> bool:
    """Return True if main.cpp only declares functions. The CUDA source then has the module, or ctypes calls it."""
    return request.functions is None and _read_prototypes("\n".join(request.cpp_sources)) is not None


def bind_main(request: BuildRequest, find_object: Callable[[], Path | str]) -> tuple[str, tuple[Path, ...]] | None:
    """Return a main.cpp without torch's headers, and the objects to link it with; None if that is not possible."""
    if exports_nothing(request):
        return "", ()
    text = write_binding(request)
    found = find_object() if text else ""
    return (text, (found,)) if text and isinstance(found, Path) else None


def escapes_nothing(text: str) -> bool:
    """Return True if a C++ string literal can contain the text unchanged: load_inline does not escape it."""
    return text.isascii() and text.isprintable() and not set(text) & set('"\\?')


def _read_prototypes(source: str) -> list[Prototype] | None:
    text = _HARMLESS_INCLUDE.sub("", _COMMENT.sub(" ", source))
    if set(text) & set("#\"'{}[]\\"):
        return None
    statements = [" ".join(statement.split()) for statement in text.split(";")]
    if statements.pop():  # after the last semicolon
        return None
    prototypes = [_read_prototype(statement) for statement in statements if statement]
    return None if not all(prototypes) else [prototype for prototype in prototypes if prototype]


def _read_prototype(statement: str) -> Prototype | None:
    found = _PROTOTYPE.fullmatch(statement)
    result = found and _RESULTS.get(_join(found[1]))
    if not found or not result or "(" in found[3]:
        return None
    texts = [] if found[3].strip() in ("", "void") else found[3].split(",")
    parameters = [_read_parameter(text) for text in texts]
    if not all(parameters):
        return None
    return Prototype(name=found[2], result=result, parameters=tuple(code for code in parameters if code))


def _read_parameter(text: str) -> str | None:
    words, equals, default = text.partition("=")
    if equals and not re.fullmatch(r"\s*(-?[\d.]+(e-?\d+)?f?|true|false|\w+::nullopt)\s*", default):
        return None
    kind = _join(words)
    named = re.fullmatch(r"(.*[ &>])(\w+)", kind)
    if named and named[2] not in _KEYWORDS:
        kind = _join(named[1])
    return _PARAMETERS.get(kind)


def _join(text: str) -> str:
    text = re.sub(r"\s*&\s*", "& ", " ".join(text.split()))
    return re.sub(r"\s*([<>])\s*", r"\1", text).strip()


def _declare(prototype: Prototype) -> str:
    parameters = (_C_TYPES[code] for code in prototype.parameters)
    return f"{_C_TYPES[prototype.result]} {prototype.name}({', '.join(parameters)});"


def _write_thunk(prototype: Prototype) -> str:
    arguments = []
    for number, code in enumerate(prototype.parameters):
        kind = "at::Tensor" if code in "trc" else _C_TYPES[_REFERENCES.get(code, code)]
        value = f"*static_cast<{kind}*>(a[{number}])"
        arguments.append(f"static_cast<{kind}&&>({value})" if code == "t" or code in _CLASSES else value)
    call = f"::{prototype.name}({', '.join(arguments)})"
    body = f"{call};" if prototype.result == "v" else f"new (r) {_C_TYPES[prototype.result]}({call});"
    return f"static void thunk_{prototype.name}(void** a, void* r) {{ (void)a; (void)r; {body} }}"


def _write_row(prototype: Prototype, docstring: str) -> str:
    return (
        f'{{{json.dumps(prototype.name)}, {json.dumps(docstring)}, "{prototype.result}", '
        f'"{"".join(prototype.parameters)}", thunk_{prototype.name}}},'
    )


def write_module(name: str, rows: Sequence[str]) -> str:
    return (
        f"const HarnessFunction harness_functions[] = {{{' '.join(rows)} {{0, 0, 0, 0, 0}}}};\n"
        f'extern "C" __attribute__((visibility("default"))) void* PyInit_{name}() '
        f'{{ return harness_open("{name}"); }}\n'
    )


_HEAD = read_header("head.h")

# torch/types.h would double the compile time, torch/extension.h again.
_BINDING_INCLUDES = """
#include <ATen/core/Tensor.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""
_BINDING = read_header("binding.h")
BINDING_SOURCE = _BINDING_INCLUDES + read_header("crash_stack.h") + FUNCTION + _BINDING
