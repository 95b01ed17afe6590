"""Compiles host C++ without modules, optimisers and Python of `torch/extension.h`; a precompiled object binds it.

The compiler reads each function's type; a type without an `Argument` or `Result` does not compile.
"""

import json

from harness.builder.fast import read_header
from harness.builder.fast.binding import FUNCTION, escapes_nothing, write_module
from harness.domain import BuildRequest

_GENERATED = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m"  # what torch's load_inline adds to the sources

_INCLUDES = read_header("host_includes.h")
_BINDING = read_header("host_binding.h")
OPERATORS_OF_HEADER = frozenset({"equal"})  # that torch/utils.h calls
HOST_HEADER = _INCLUDES + FUNCTION + _BINDING


def write_host_main(request: BuildRequest, generated: str) -> str | None:
    """Replace the module in torch's own main.cpp, `generated`, by a table of functions; return None if impossible."""
    source, module, _ = generated.rpartition(_GENERATED)
    if not (module and request.functions and request.with_pytorch_error_handling and request.is_python_module):
        return None
    if any(not escapes_nothing(text) for pair in request.functions for text in pair):
        return None
    bound = {name: f"harness_binding::Bound<{name}>" for name, _ in request.functions}
    rows = [
        f"{{{json.dumps(name)}, {json.dumps(docstring)}, {bound[name]}::result, {bound[name]}::parameters, "
        f"{bound[name]}::call}},"
        for name, docstring in request.functions
    ]
    return source + write_module(request.name, rows)
