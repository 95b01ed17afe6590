// What a checked build knows of tensors whose memory others have allocated.
#pragma once
#include "core.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {
// The same tensor, whose memory is known from now on.
template <typename T>
T&& known(T&& tensor) {
  if constexpr (std::is_base_of<at::TensorBase, std::remove_cv_t<std::remove_reference_t<T>>>::value) {
    if (tensor.defined() && tensor.has_storage()) { know_memory(tensor.storage().data(), tensor.storage().nbytes()); }
  }
  return static_cast<T&&>(tensor);
}
}

// What torch declares for a GPU's compiler only.
namespace at {
template <typename T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};
}
constexpr uint32_t CUDA_MAX_THREADS_PER_BLOCK = 1024, CUDA_MAX_THREADS_PER_SM = 2048, CUDA_THREADS_PER_BLOCK_FALLBACK = 256;
#define C10_MAX_THREADS_PER_BLOCK(count) ((count) <= CUDA_MAX_THREADS_PER_BLOCK ? (count) : CUDA_THREADS_PER_BLOCK_FALLBACK)
#define C10_MIN_BLOCKS_PER_SM(threads, blocks) \
  ((threads) * (blocks) <= CUDA_MAX_THREADS_PER_SM ? (blocks) : (CUDA_MAX_THREADS_PER_SM + (threads) - 1) / (threads))
#define C10_LAUNCH_BOUNDS_0
