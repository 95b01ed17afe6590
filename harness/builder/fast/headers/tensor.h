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
