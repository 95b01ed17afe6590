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
