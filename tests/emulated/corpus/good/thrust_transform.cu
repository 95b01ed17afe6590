// thrust: transform with a functor, and a sort in place.
// forward: torch.sort(x * x + 1, descending=True).values
// inputs: x = torch.randn(257)
#include <torch/extension.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

struct SquarePlusOne {
  __host__ __device__ float operator()(float v) const { return v * v + 1.0f; }
};

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  thrust::device_ptr<float> in(x.data_ptr<float>()), out(y.data_ptr<float>());
  thrust::transform(in, in + x.numel(), out, SquarePlusOne());
  thrust::sort(thrust::device, out, out + x.numel(), thrust::greater<float>());
  return y;
}
