"""Declarations that replace torch's headers for the CUDA compiler, which needs them only to find launches and template
arguments. A wrong one causes an error in the host code, and thus the standard strategy.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from harness.builder.fast import read_header

# Feature -> words that need it, and torch headers that define it.
REAL_HEADERS = {
    "half": (("Half", "HALF", "kHalf", "kFloat16"), ("c10/util/Half.h",)),
    "bfloat16": (("BFloat16", "BFLOAT16", "kBFloat16"), ("c10/util/BFloat16.h",)),
    "complex": (("complex", "COMPLEX"), ("c10/util/complex.h",)),
    "accessor": (("accessor", "Accessor"), ("ATen/core/TensorAccessor.h",)),
}
STANDARD_HEADERS = (
    "cstddef", "cstdint", "cmath", "cstdlib", "cstring", "climits", "cassert", "cstdio", "limits", "algorithm",
    "utility", "tuple", "optional", "string", "string_view", "vector", "array", "functional", "memory",
    "initializer_list", "type_traits", "stdexcept", "numeric",
)  # fmt: skip
# Further features by word.
MORE_STANDARD_HEADERS = {
    "iostream": ("cout", "cerr", "endl", "ostream", "istream"),
    "sstream": (
        "stringstream",
        "ostringstream",
        "istringstream",
        *(f"TORCH_CHECK_{operator}" for operator in ("EQ", "NE", "LE", "LT", "GE", "GT")),
    ),
    "map": ("map", "multimap"),
    "unordered_map": ("unordered_map",),
    "set": ("set",),
    "unordered_set": ("unordered_set",),
    "mutex": ("mutex", "lock_guard", "once_flag", "call_once", "unique_lock"),
    "atomic": ("atomic",),
    "thread": ("this_thread", "jthread"),
    "chrono": ("chrono",),
    "complex": ("complex",),
    "variant": ("variant",),
    "list": ("list",),
    "deque": ("deque",),
    "bitset": ("bitset",),
    "iomanip": ("setw", "setprecision"),
}

BEFORE_TENSOR = read_header("before_tensor.h")

TENSOR = read_header("tensor.h")
ACCESSORS = """
  template <typename T, size_t N> TensorAccessor<T, N> accessor() const&;
  template <typename T, size_t N, template <typename U> class P = DefaultPtrTraits, typename I = int64_t>
  GenericPackedTensorAccessor<T, N, P, I> generic_packed_accessor() const&;
  template <typename T, size_t N, template <typename U> class P = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, P> packed_accessor32() const&;
  template <typename T, size_t N, template <typename U> class P = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, P> packed_accessor64() const&;
"""
C10_OPTIONAL = (
    "namespace c10 { using ::std::nullopt; using ::std::nullopt_t; using ::std::optional; using ::std::string_view; }\n"
)

CUDA = read_header("cuda.h")


def find_features(words: frozenset[str]) -> tuple[str, ...]:
    features = [
        name
        for name, (markers, _) in REAL_HEADERS.items()
        if any(marker in word for word in words for marker in markers)
    ]
    features += [f"std:{header}" for header, markers in MORE_STANDARD_HEADERS.items() if words & set(markers)]
    return tuple(features)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchNames:
    scalar_types: tuple[tuple[str, str], ...]  # (C++ type, name), in enumeration order
    device_types: tuple[str, ...]
    constants: str
    methods: dict[str, list[str]]  # name -> member declarations
    functions: dict[str, list[str]]  # name -> declarations with namespace


def read_torch_names(include: Path, macros: dict[str, str]) -> TorchNames:
    """Raises KeyError or OSError for an unsupported torch."""
    pairs = re.findall(r"_\((.+?), (\w+)\)(?= |$)", macros["AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS"])
    types = include / "torch" / "csrc" / "api" / "include" / "torch" / "types.h"
    functions: dict[str, list[str]] = {}
    for path in sorted((include / "ATen" / "ops").glob("*.h")):
        if not path.name.endswith(("_ops.h", "_native.h", "_dispatch.h", "_meta.h")):
            _add_functions(functions, path.read_text(encoding="utf-8"), "at")
    factories = include / "torch" / "csrc" / "autograd" / "generated" / "variable_factories.h"
    _add_functions(functions, factories.read_text(encoding="utf-8"), "torch")
    return TorchNames(
        scalar_types=tuple((found[0], found[1]) for found in pairs),
        device_types=_read_device_types(include),
        constants="\n".join(re.findall(r"^constexpr auto k\w+ = at::k\w+;", types.read_text(encoding="utf-8"), re.M)),
        methods=_read_methods((include / "ATen" / "core" / "TensorBody.h").read_text(encoding="utf-8")),
        functions=functions,
    )


def _add_functions(functions: dict[str, list[str]], text: str, namespace: str) -> None:
    own = set(re.findall(r"(\w+)\(", TENSOR.partition("namespace torch")[2]))
    for found in re.finditer(r"^inline ([\w:<>, &*]+?) ?\b(\w+)\((.*)\) \{$", text, re.M):
        declaration = f"namespace {namespace} {{ {found[1]} {found[2]}({found[3]}); }}"
        if found[2] not in own or namespace == "at":
            functions.setdefault(found[2], []).append(declaration)


def _read_device_types(include: Path) -> tuple[str, ...]:
    for name in ("torch/headeronly/core/DeviceType.h", "c10/core/DeviceType.h"):
        path = include / name
        found = (
            re.search(r"enum class DeviceType : int8_t \{(.*?)\}", path.read_text(), re.S) if path.exists() else None
        )
        if found:
            return tuple(re.findall(r"^\s*(\w+) = ", found[1], re.M))
    raise KeyError("enum class DeviceType")


def _read_methods(body: str) -> dict[str, list[str]]:
    own = set(re.findall(r"(\w+)\(", TENSOR))
    methods: dict[str, list[str]] = {}
    for line, name in re.findall(r"^  ((?:const )?[\w:<>, &*]+? ?\b(\w+)\(.*\) const(?: &)?;)$", body, re.M):
        if name not in own and not line.startswith("return") and "T&&" not in line:
            methods.setdefault(name, []).append(line)
    return methods


def write_stub_headers(names: TorchNames, features: tuple[str, ...], words: frozenset[str]) -> str:
    real = [header for name in features if name in REAL_HEADERS for header in REAL_HEADERS[name][1]]
    more = [name.removeprefix("std:") for name in features if name.startswith("std:")]
    includes = "".join(f"#include <{header}>\n" for header in (*STANDARD_HEADERS, *more))
    known = [(kind, name) for kind, name in names.scalar_types if _is_known(kind, features)]
    mapping = "".join(
        f"template <> struct ScalarTypeToCPPType<ScalarType::{name}> {{ using type = {kind}; }};\n"
        for kind, name in known
    )
    declared = "".join(f"{line}\n" for word in sorted(words) for line in names.functions.get(word, ()))
    before = BEFORE_TENSOR.replace("@DEVICE_TYPES@", ", ".join(names.device_types))
    before = before.replace(
        "@SCALAR_TYPES@", ", ".join([*(name for _, name in names.scalar_types), "Undefined", "NumOptions"])
    )
    before = before.replace(
        "@K_CONSTANTS@",
        "".join(f"constexpr ScalarType k{name} = ScalarType::{name};\n" for _, name in names.scalar_types),
    )
    methods = "\n".join(line for word in sorted(words) for line in names.methods.get(word, ()))
    tensor = TENSOR.replace("@METHODS@", methods).replace("@OPERATORS@", _operators())
    tensor = tensor.replace("@ACCESSORS@", ACCESSORS if "accessor" in features else "")
    return "".join([
        "#pragma nv_diag_suppress 114, 177\n", includes, C10_OPTIONAL, before,
        "".join(f"#include <{header}>\n" for header in real),
        "namespace at { using namespace c10; }\nnamespace c10::impl {\n", mapping, "}\n", tensor,
        declared, "namespace torch {\n", names.constants, "\n}\n", CUDA,
        "#pragma nv_diag_default 114, 177\n",
    ])  # fmt: skip


def _is_known(kind: str, features: tuple[str, ...]) -> bool:
    needs = {"Half": "half", "BFloat16": "bfloat16", "complex": "complex"}
    missing = any(word in kind and feature not in features for word, feature in needs.items())
    return not missing and not re.search(r"q[us]?int|Float[48]|bits|Bits|dummy", kind)


def _operators() -> str:
    lines = []
    for operator in ("+", "-", "*", "/", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!="):
        for pair in (("Tensor", "Tensor"), ("Tensor", "Scalar"), ("Scalar", "Tensor")):
            lines.append(f"Tensor operator{operator}(const {pair[0]}&, const {pair[1]}&);")
    return "\n".join(lines)
