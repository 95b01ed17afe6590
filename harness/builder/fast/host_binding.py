"""Compiles host C++ without modules, optimisers and Python of `torch/extension.h`; a precompiled object binds it.

The compiler reads each function's type; a type without an `Argument` or `Result` does not compile.
"""

from __future__ import annotations

import json

from harness.builder.fast.binding import FUNCTION, escapes_nothing, write_module
from harness.domain import BuildRequest

_GENERATED = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m"  # what torch's load_inline adds to the sources

_INCLUDES = """
#ifndef HARNESS_HOST_HEADER
#define HARNESS_HOST_HEADER
#include <torch/types.h>
#include <torch/utils.h>
#include <ATen/Parallel.h>
#include <cxxabi.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <forward_list>
#include <new>
#include <optional>
#include <queue>
#include <stack>
#include <type_traits>
#include <utility>
#include <valarray>
#include <vector>
"""
_BINDING = """
namespace harness_binding {
template <typename T> struct Argument;
template <typename T, char C> struct Plain {
  static constexpr char code = C;
  static T take(void* value) { return *static_cast<T*>(value); }
};
template <> struct Argument<long> : Plain<long, 'l'> {};
template <> struct Argument<int> : Plain<int, 'i'> {};
template <> struct Argument<double> : Plain<double, 'd'> {};
template <> struct Argument<float> : Plain<float, 'f'> {};
template <> struct Argument<bool> : Plain<bool, 'b'> {};
template <typename T, char C> struct Tensors {
  static constexpr char code = C;
  static T take(void* value) { return static_cast<T>(*static_cast<at::Tensor*>(value)); }
};
template <> struct Argument<at::Tensor&> : Tensors<at::Tensor&, 'r'> {};
template <> struct Argument<const at::Tensor&> : Tensors<const at::Tensor&, 'c'> {};
template <> struct Argument<at::Tensor> : Tensors<at::Tensor&&, 't'> {};
template <typename T, char C> struct Moved {
  static constexpr char code = C;
  static T&& take(void* value) { return static_cast<T&&>(*static_cast<T*>(value)); }
};
template <typename T, char C> struct Referred {
  static constexpr char code = C;
  static const T& take(void* value) { return *static_cast<const T*>(value); }
};
template <> struct Argument<std::optional<at::Tensor>> : Moved<std::optional<at::Tensor>, 'o'> {};
template <> struct Argument<std::vector<at::Tensor>> : Moved<std::vector<at::Tensor>, 'T'> {};
template <> struct Argument<std::vector<long>> : Moved<std::vector<long>, 'I'> {};
template <> struct Argument<const std::optional<at::Tensor>&> : Referred<std::optional<at::Tensor>, 'p'> {};
template <> struct Argument<const std::vector<at::Tensor>&> : Referred<std::vector<at::Tensor>, 'V'> {};
template <> struct Argument<const std::vector<long>&> : Referred<std::vector<long>, 'J'> {};
template <typename T> struct Result { static constexpr char code = Argument<T>::code; };
template <> struct Result<void> { static constexpr char code = 'v'; };
template <> struct Result<std::vector<at::Tensor>> { static constexpr char code = 'L'; };
template <typename T> struct Result<T&>;
template <> struct Result<std::optional<at::Tensor>>;
template <> struct Result<std::vector<long>>;
namespace {  // per library: the type of F does not contain its result
template <auto F> struct Bound;
template <typename R, typename... A, R (*F)(A...)> struct Bound<F> {
  static constexpr char result[] = {Result<R>::code, 0};
  static constexpr char parameters[] = {Argument<A>::code..., 0};
  template <std::size_t... I> static void pass(void** arguments, void* result, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      F(Argument<A>::take(arguments[I])...);
    } else {
      new (result) R(F(Argument<A>::take(arguments[I])...));
    }
  }
  static void call(void** arguments, void* result) { pass(arguments, result, std::index_sequence_for<A...>{}); }
};
}
}
#endif
"""
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
