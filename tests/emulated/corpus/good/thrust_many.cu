// Sums, norms and a transformation by thrust on raw pointers.
// forward: (torch.stack([x.sum(), x.norm(), x.max()]), x.clamp(min=0))
// inputs: x = torch.randn(500)
// returns: tuple(ext.run(x))
#include <torch/extension.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
struct square_op { __host__ __device__ float operator()(const float& v) const { return v * v; } };
struct keep_op { float* o; __device__ void operator()(int i) const { o[i] = o[i] * 1.0f; } };
struct relu_op { __device__ float operator()(float v) const { return v > 0.f ? v : 0.f; } };
std::vector<torch::Tensor> run(torch::Tensor x) {
  float* p = x.data_ptr<float>();
  const int n = x.numel();
  thrust::device_ptr<float> begin = thrust::device_pointer_cast(p);
  float sum = thrust::reduce(begin, begin + n, 0.0f, thrust::plus<float>());
  float norm = std::sqrt(thrust::transform_reduce(thrust::device, p, p + n, square_op(), 0.f, thrust::plus<float>()));
  float largest = thrust::reduce(thrust::device, p, p + n, -1e30f, thrust::maximum<float>());
  auto out = torch::empty_like(x);
  thrust::transform(thrust::device, p, p + n, out.data_ptr<float>(), relu_op());
  thrust::device_vector<float> copy(begin, begin + n);
  TORCH_CHECK(copy.size() == (size_t)n);
  TORCH_CHECK(*thrust::max_element(copy.begin(), copy.end()) == largest);
  auto indices = thrust::make_counting_iterator(0);
  thrust::for_each(thrust::device, indices, indices + n, keep_op{out.data_ptr<float>()});
  return {torch::tensor({sum, norm, largest}, x.options()), out};
}
