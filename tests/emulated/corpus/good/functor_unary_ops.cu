// One elementwise kernel, given what it does as a functor; and a host table of operations.
// forward: F.hardswish(x) + F.softplus(x) + F.elu(x, 0.7)
// inputs: x = torch.randn(19, 77) * 3
#include <torch/extension.h>
#include <functional>
#include <map>
#include <string>

struct HardSwish { __device__ __forceinline__ float operator()(float v) const { return v * fminf(fmaxf(v + 3.f, 0.f), 6.f) / 6.f; } };
struct Softplus { float beta = 1.f, threshold = 20.f;
  __device__ float operator()(float v) const { return v * beta > threshold ? v : log1pf(expf(v * beta)) / beta; } };
struct Elu { const float alpha; explicit Elu(float a) : alpha(a) {}
  __host__ __device__ float operator()(float v) const { return v > 0 ? v : alpha * (expf(v) - 1); } };

template <typename Op>
__global__ void unary(const float* __restrict__ in, float* __restrict__ out, int n, Op op) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] += op(in[i]);
}
template <typename Op> static void launch(const torch::Tensor& x, torch::Tensor& y, Op op) {
  const int n = x.numel();
  unary<Op><<<std::max(1, std::min(n / 256, 1024)), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, op);
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  std::map<std::string, std::function<void()>> ops;
  ops["hardswish"] = [&] { launch(x, y, HardSwish()); };
  ops["softplus"] = [&] { launch(x, y, Softplus{}); };
  ops["elu"] = [&] { launch(x, y, Elu(0.7f)); };
  for (const auto& [name, op] : ops) { TORCH_CHECK(!name.empty()); op(); }
  return y;
}
