// Many includes for nothing, ATen/cuda headers, THC-free; c10 macros; C10_LAUNCH_BOUNDS_1, CUDA_1D_KERNEL_LOOP, GET_BLOCKS.
// forward: x.abs().sqrt()
// inputs: x = torch.randn(77)
#include <torch/extension.h>
#include <torch/script.h>
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAApplyUtils.cuh>
#include <ATen/cuda/detail/KernelUtils.h>
#include <ATen/native/cuda/KernelUtils.cuh>
#include <c10/cuda/CUDAMathCompat.h>
#include <c10/macros/Macros.h>
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
#include <curand.h>
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <vector_functions.h>
#include <sm_60_atomic_functions.h>
#include <algorithm>
#include <iostream>
#include <sstream>
#include <iomanip>
#include <chrono>
#include <cstring>
#include <numeric>
#include <memory>
#include <unordered_map>
#include <mutex>
using at::cuda::detail::GET_BLOCKS;
C10_LAUNCH_BOUNDS_1(1024)
__global__ void k(const int n, const float* x, float* y) { CUDA_KERNEL_LOOP(i, n) { y[i] = ::sqrt(c10::cuda::compat::abs(x[i])); } }
torch::Tensor run(torch::Tensor x) {
  auto y = at::empty_like(x);
  static std::mutex mu; std::lock_guard<std::mutex> lock(mu);
  k<<<GET_BLOCKS(x.numel()), at::cuda::detail::CUDA_NUM_THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(x.numel(), x.const_data_ptr<float>(), y.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (std::getenv("DEBUG_K")) std::cout << "n " << std::setw(4) << x.numel() << std::endl;
  return y;
}
