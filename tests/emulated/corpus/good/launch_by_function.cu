// cudaLaunchKernel with an array of arguments, of a template with an extern "C" neighbour.
// forward: (x * 3).relu()
// inputs: x = torch.randn(31, 31)
#include <torch/extension.h>

template <typename T, bool RELU>
__global__ void triple(const T* x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    T v = x[i] * T(3);
    if constexpr (RELU) v = v > T(0) ? v : T(0);
    y[i] = v;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  int n = x.numel();
  void* arguments[] = {(void*)&in, (void*)&out, (void*)&n};
  cudaLaunchKernel((const void*)triple<float, true>, dim3((n + 127) / 128), dim3(128), arguments, 0, nullptr);
  return y;
}
