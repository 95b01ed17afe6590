// What a checked build knows of tensors whose memory others have allocated.
#pragma once
#include "core.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {
inline const at::TensorBase& known(const at::TensorBase& tensor) {
  if (tensor.defined() && tensor.has_storage()) { know_memory(tensor.storage().data(), tensor.storage().nbytes()); }
  return tensor;
}
inline const at::Tensor& known(const at::Tensor& tensor) {
  known(static_cast<const at::TensorBase&>(tensor));
  return tensor;
}
template <typename T>
T&& known(T&& other) { return static_cast<T&&>(other); }
}

// What torch declares for a GPU's compiler only.
namespace at {
template <typename T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};
}
