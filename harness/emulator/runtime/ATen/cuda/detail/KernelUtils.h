// Loops over a grid as torch's own kernels write them.
#pragma once
#include <c10/util/Exception.h>
#include <emulator/device_core.h>
#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                              \
  int64_t _i_n_d_e_x = int64_t(::harness_emulator::current->block->index.x) * ::harness_emulator::current->block->launch->block.x + ::harness_emulator::current->thread.x;                       \
  for (index_type i = index_type(_i_n_d_e_x); _i_n_d_e_x < (n); _i_n_d_e_x += int64_t(::harness_emulator::current->block->launch->block.x) * ::harness_emulator::current->block->launch->grid.x, i = index_type(_i_n_d_e_x))
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
namespace at::cuda::detail {
constexpr int CUDA_NUM_THREADS = 1024;
inline int GET_BLOCKS(const int64_t count, const int64_t threads = CUDA_NUM_THREADS) {
  TORCH_INTERNAL_ASSERT(count > 0, "CUDA kernel launch blocks must be positive, but got N=", count);
  return int((count - 1) / threads + 1);
}
}
