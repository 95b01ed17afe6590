"""Declarations that replace torch's headers for the CUDA compiler, which needs them only to find launches and template
arguments. A wrong one causes an error in the host code, and thus the standard strategy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

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

BEFORE_TENSOR = r"""
#include <c10/macros/Macros.h>
#include <c10/macros/Export.h>
namespace c10 {
struct SourceLocation {
  const char* function; const char* file; uint32_t line;
  static SourceLocation current(const char* = "", const char* = "", uint32_t = 0);
};
class MessageLogger { public: MessageLogger(SourceLocation, int, bool = true); ~MessageLogger() noexcept(false);
  ::std::stringstream& stream(); };
struct LoggerVoidify { void operator&(const ::std::ostream&); };
constexpr int GLOG_FATAL = 3, GLOG_ERROR = 2, GLOG_WARNING = 1, GLOG_INFO = 0;
class Error : public ::std::exception {
 public:
  Error(SourceLocation, ::std::string); const char* what() const noexcept override; const ::std::string& msg() const;
  const char* what_without_backtrace() const noexcept;
};
template <typename T> class ArrayRef {
 public:
  using value_type = T; using iterator = const T*; using const_iterator = const T*; using size_type = size_t;
  ArrayRef(); ArrayRef(const T&); ArrayRef(const T*, size_t);
  ArrayRef(const T*, const T*); ArrayRef(const ::std::vector<T>&); ArrayRef(const ::std::initializer_list<T>&);
  template <size_t N> ArrayRef(const ::std::array<T, N>&); template <size_t N> ArrayRef(const T (&)[N]);
  const T* begin() const; const T* end() const; const T* data() const;
  size_t size() const; bool empty() const; const T& front() const;
  const T& back() const; const T& operator[](size_t) const; const T& at(size_t) const;
  bool equals(ArrayRef) const; ArrayRef slice(size_t, size_t) const;
  ArrayRef slice(size_t) const; ::std::vector<T> vec() const;
};
template <typename T> bool operator==(ArrayRef<T>, ArrayRef<T>);
template <typename T> bool operator!=(ArrayRef<T>, ArrayRef<T>);
using IntArrayRef = ArrayRef<int64_t>;
class SymInt { public: SymInt(int64_t); int64_t expect_int() const; int64_t guard_int(const char*, int64_t) const; };
using SymIntArrayRef = ArrayRef<SymInt>;
template <typename T> class OptionalArrayRef {
 public:
  OptionalArrayRef(); OptionalArrayRef(::std::nullopt_t); OptionalArrayRef(const ArrayRef<T>&);
  OptionalArrayRef(const T&); OptionalArrayRef(const ::std::initializer_list<T>&);
    OptionalArrayRef(const ::std::vector<T>&);
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;
using OptionalSymIntArrayRef = OptionalArrayRef<SymInt>;
enum class DeviceType : int8_t { @DEVICE_TYPES@ };
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;
using StreamId = int64_t;
struct Device {
  using Type = DeviceType;
  Device(DeviceType, DeviceIndex = -1); Device(const ::std::string&);
  bool operator==(const Device&) const; bool operator!=(const Device&) const;
  DeviceType type() const; DeviceIndex index() const; bool has_index() const; bool is_cuda() const; bool is_cpu() const;
  ::std::string str() const; void set_index(DeviceIndex);
};
enum class Layout : int8_t { Strided, Sparse, SparseCsr, Mkldnn };
constexpr auto kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d, NumOptions };
class Scalar {
 public:
  Scalar();
#if __cplusplus >= 202002L
  template <typename T> requires(::std::is_arithmetic_v<T>) Scalar(T);
#else
  template <typename T, ::std::enable_if_t<::std::is_arithmetic_v<T>, int> = 0> Scalar(T);
#endif
  template <typename T> T to() const; double toDouble() const; float toFloat() const; int64_t toLong() const;
  int toInt() const; bool toBool() const;
};
enum class QScheme : uint8_t {};
class Storage { public: void* data() const; size_t nbytes() const; };
class Stream { public: Device device() const; StreamId id() const; };
class DispatchKeySet; class TensorImpl;
}
namespace c10 {
enum class ScalarType : int8_t { @SCALAR_TYPES@ };
namespace impl {
template <ScalarType N> struct ScalarTypeToCPPType;
template <ScalarType N> using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<N>::type;
}
}
namespace torch::headeronly {
using c10::ScalarType;
const char* toString(ScalarType);
namespace impl { using c10::impl::ScalarTypeToCPPType; using c10::impl::ScalarTypeToCPPTypeT; }
}
namespace c10 {
using torch::headeronly::toString;
template <typename T> struct CppTypeToScalarType;
size_t elementSize(ScalarType); bool isFloatingType(ScalarType); bool isIntegralType(ScalarType, bool);
bool isComplexType(ScalarType);
@K_CONSTANTS@
template <typename... Args> ::std::string str(const Args&...);
class Warning;
struct UserWarning {};
struct DeprecationWarning {};
void warn(const Warning&);
class Warning { public: template <typename K> Warning(K, const SourceLocation&, ::std::string, bool); };
class IndexError : public Error { using Error::Error; };
class ValueError : public Error { using Error::Error; };
class TypeError : public Error { using Error::Error; };
class NotImplementedError : public Error { using Error::Error; };
namespace detail {
void deprecated_AT_ERROR(); void deprecated_AT_ASSERT(); void deprecated_AT_ASSERTM();
template <typename... A> [[noreturn]] void torchCheckFail(const char*, const char*, uint32_t, const A&...);
template <typename... A>
  [[noreturn]] void torchInternalAssertFail(const char*, const char*, uint32_t, const char*, const A&...);
template <typename... A> const char* torchCheckMsgImpl(const char*, const A&...);
}
}
namespace caffe2 { class TypeMeta { public: size_t itemsize() const; ::std::string name() const;
  template <typename T> static TypeMeta Make(); };
bool operator==(TypeMeta, TypeMeta); bool operator!=(TypeMeta, TypeMeta); }
namespace c10 {
inline bool operator==(ScalarType, caffe2::TypeMeta); inline bool operator==(caffe2::TypeMeta, ScalarType);
inline bool operator!=(ScalarType, caffe2::TypeMeta); inline bool operator!=(caffe2::TypeMeta, ScalarType);
ScalarType typeMetaToScalarType(caffe2::TypeMeta);
struct TensorOptions {
  TensorOptions(); explicit TensorOptions(Layout);
#if __cplusplus >= 202002L
  template <typename T> requires(::std::is_convertible_v<T, Device>) TensorOptions(T&&);
#else
  template <typename T, ::std::enable_if_t<::std::is_convertible_v<T, Device>, int> = 0> TensorOptions(T&&);
#endif
  TensorOptions(MemoryFormat); TensorOptions(ScalarType); TensorOptions(caffe2::TypeMeta);
  TensorOptions device(::std::optional<Device>) const; template <typename... A> TensorOptions device(A&&...) const;
  TensorOptions dtype(::std::optional<ScalarType>) const; TensorOptions dtype(caffe2::TypeMeta) const;
  template <typename T> TensorOptions& dtype();
  TensorOptions layout(::std::optional<Layout>) const; TensorOptions requires_grad(::std::optional<bool>) const;
  TensorOptions pinned_memory(::std::optional<bool>) const;
    TensorOptions memory_format(::std::optional<MemoryFormat>) const;
  TensorOptions device_index(DeviceIndex) const;
  Device device() const; caffe2::TypeMeta dtype() const; Layout layout() const; bool requires_grad() const;
    bool pinned_memory() const;
};
TensorOptions dtype(ScalarType); TensorOptions dtype(caffe2::TypeMeta); TensorOptions layout(Layout);
  TensorOptions device(Device);
TensorOptions device_index(DeviceIndex); TensorOptions requires_grad(bool = true);
  TensorOptions memory_format(MemoryFormat);
template <typename T> TensorOptions dtype();
template <typename I> struct irange_values { I* begin() const; I* end() const; };
int64_t maybe_wrap_dim(int64_t, int64_t, bool = true);
class DeviceGuard { public: explicit DeviceGuard(Device); };
class OptionalDeviceGuard { public: OptionalDeviceGuard(); explicit OptionalDeviceGuard(::std::optional<Device>); };
}
namespace at {
using namespace c10;
class Tensor; class TensorBase;
using IntArrayRef = c10::ArrayRef<int64_t>;
struct Generator {}; class Dimname; using DimnameList = c10::ArrayRef<Dimname>;
using TensorList = c10::ArrayRef<Tensor>;
class ITensorListRef { public: ITensorListRef(TensorList); ITensorListRef(const ::std::vector<Tensor>&);
  ITensorListRef(::std::initializer_list<Tensor>); };
class IOptTensorListRef;
namespace Reduction { enum Reduction { None, Mean, Sum, END }; }
constexpr bool should_include_kernel_dtype(const char*, c10::ScalarType) { return true; }
namespace indexing { struct Slice; struct TensorIndex; }
}
namespace c10 { template <typename T> class List {}; }
namespace detail {
inline at::ScalarType scalar_type(at::ScalarType s) { return s; }
}
"""

TENSOR = r"""
namespace at {
class TensorBase {
 public:
  TensorBase(); TensorBase(const TensorBase&); TensorBase(TensorBase&&); TensorBase& operator=(const TensorBase&) &;
    ~TensorBase();
  int64_t dim() const; int64_t storage_offset() const; int64_t size(int64_t) const; int64_t stride(int64_t) const;
  IntArrayRef sizes() const; IntArrayRef strides() const; int64_t numel() const; int64_t ndimension() const;
  size_t nbytes() const; size_t itemsize() const; int64_t element_size() const; bool defined() const;
  ScalarType scalar_type() const; caffe2::TypeMeta dtype() const; Device device() const; int64_t get_device() const;
  Layout layout() const; TensorOptions options() const; bool is_cuda() const; bool is_cpu() const;
    bool is_sparse() const;
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const; bool is_non_overlapping_and_dense() const;
  MemoryFormat suggest_memory_format(bool = false) const; bool has_storage() const; const Storage& storage() const;
  bool is_alias_of(const TensorBase&) const; bool is_same(const TensorBase&) const; size_t use_count() const;
  bool is_complex() const; bool is_floating_point() const; bool is_signed() const; bool requires_grad() const;
  bool is_leaf() const; bool is_meta() const; bool is_quantized() const; ::std::string toString() const;
    c10::TensorImpl* unsafeGetTensorImpl() const;
  void* data_ptr() const; void* mutable_data_ptr() const; const void* const_data_ptr() const;
  template <typename T> T* data_ptr() const; template <typename T> T* mutable_data_ptr() const;
  template <typename T> const T* const_data_ptr() const;
@ACCESSORS@
};
class Tensor : public TensorBase {
 public:
  Tensor(); Tensor(const Tensor&); Tensor(Tensor&&); explicit Tensor(const TensorBase&); ~Tensor();
  Tensor& operator=(const Tensor&) &; Tensor& operator=(Tensor&&) &; Tensor& operator=(const Tensor&) &&;
  Tensor& operator=(Tensor&&) &&; Tensor& operator=(const Scalar&) &&;
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const; Tensor conj() const; Tensor alias() const;
  template <typename T> T item() const; Scalar item() const; Tensor operator~() const; Tensor operator-() const;
  Tensor& operator+=(const Tensor&); Tensor& operator+=(const Scalar&); Tensor& operator-=(const Tensor&);
    Tensor& operator-=(const Scalar&);
  Tensor& operator*=(const Tensor&); Tensor& operator*=(const Scalar&); Tensor& operator/=(const Tensor&);
    Tensor& operator/=(const Scalar&);
  Tensor operator[](const Scalar&) const; Tensor operator[](const Tensor&) const; Tensor operator[](int64_t) const;
  Tensor cpu() const; Tensor cuda() const; const Tensor& grad() const; Tensor& mutable_grad(); Tensor data() const;
  Tensor toType(ScalarType) const; const Tensor& set_requires_grad(bool) const;
    const Tensor& requires_grad_(bool = true) const; using TensorBase::requires_grad;
  void print() const;
  template <typename... A> Tensor index(::std::initializer_list<at::indexing::TensorIndex>) const;
@METHODS@
};
@OPERATORS@
}
namespace at {
void parallel_for(int64_t, int64_t, int64_t, const ::std::function<void(int64_t, int64_t)>&);
int get_num_threads(); bool globalContext();
struct AutoDispatchBelowAutograd { AutoDispatchBelowAutograd(); };
template <typename T> T ceil_div(T, T);
::std::optional<Device> device_of(const Tensor&); ::std::optional<Device> device_of(const ::std::optional<Tensor>&);
  ::std::optional<Device> device_of(ITensorListRef);
}
namespace c10 { namespace detail_irange {} }
namespace torch {
using namespace at;
using Dtype = at::ScalarType;
using c10::nullopt; using c10::optional;
struct NoGradGuard { NoGradGuard(); };
at::Tensor from_blob(void*, at::IntArrayRef, const at::TensorOptions& = at::TensorOptions());
at::Tensor from_blob(void*, at::IntArrayRef, at::IntArrayRef, const at::TensorOptions& = at::TensorOptions());
at::Tensor tensor(::std::initializer_list<int64_t>, const at::TensorOptions& = {});
  at::Tensor tensor(::std::initializer_list<double>, const at::TensorOptions& = {});
at::Tensor tensor(at::ArrayRef<int64_t>, const at::TensorOptions& = {});
  at::Tensor tensor(at::ArrayRef<double>, const at::TensorOptions& = {});
at::Tensor tensor(double, const at::TensorOptions& = {}); at::Tensor tensor(float, const at::TensorOptions& = {});
  at::Tensor tensor(int64_t, const at::TensorOptions& = {}); at::Tensor tensor(int, const at::TensorOptions& = {});
}
"""
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

CUDA = r"""
namespace c10::cuda {
class CUDAStream {
 public:
  operator cudaStream_t() const; operator Stream() const; cudaStream_t stream() const; DeviceIndex device_index() const;
  Device device() const; StreamId id() const; void synchronize() const; bool query() const; Stream unwrap() const;
  bool operator==(const CUDAStream&) const; bool operator!=(const CUDAStream&) const;
};
CUDAStream getCurrentCUDAStream(DeviceIndex = -1); CUDAStream getDefaultCUDAStream(DeviceIndex = -1);
CUDAStream getStreamFromPool(const bool = false, DeviceIndex = -1);
  CUDAStream getStreamFromPool(const int, DeviceIndex = -1);
void setCurrentCUDAStream(CUDAStream);
DeviceIndex device_count() noexcept; DeviceIndex current_device(); void set_device(DeviceIndex);
  void device_synchronize();
struct CUDAGuard {
  explicit CUDAGuard(DeviceIndex); explicit CUDAGuard(Device); void set_device(Device); void set_index(DeviceIndex);
  Device original_device() const; Device current_device() const;
};
struct OptionalCUDAGuard { explicit OptionalCUDAGuard(); explicit OptionalCUDAGuard(::std::optional<Device>);
  explicit OptionalCUDAGuard(::std::optional<DeviceIndex>); void set_device(Device); void set_index(DeviceIndex); };
struct CUDAStreamGuard { explicit CUDAStreamGuard(Stream); };
struct CUDAErrorLogCapture { CUDAErrorLogCapture(); ~CUDAErrorLogCapture(); };
template <typename... A> void c10_cuda_check_implementation(A...);
}
namespace at::cuda {
using namespace c10::cuda;
cudaDeviceProp* getCurrentDeviceProperties(); cudaDeviceProp* getDeviceProperties(c10::DeviceIndex); int warp_size();
bool is_available();
}
"""


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
