// cub::DeviceReduce and DeviceScan, each asked for its temporary storage first.
// forward: torch.cat([x.sum().reshape(1), torch.cumsum(x, 0)])
// inputs: x = torch.randn(333)
#include <torch/extension.h>
#include <cub/cub.cuh>

torch::Tensor run(torch::Tensor x) {
  int n = x.numel();
  auto y = torch::empty({n + 1}, x.options());
  size_t bytes = 0, scan_bytes = 0;
  cub::DeviceReduce::Sum(nullptr, bytes, x.data_ptr<float>(), y.data_ptr<float>(), n);
  cub::DeviceScan::InclusiveSum(nullptr, scan_bytes, x.data_ptr<float>(), y.data_ptr<float>() + 1, n);
  auto storage = torch::empty({(int64_t)std::max(bytes, scan_bytes)}, x.options().dtype(torch::kUInt8));
  cub::DeviceReduce::Sum(storage.data_ptr(), bytes, x.data_ptr<float>(), y.data_ptr<float>(), n);
  cub::DeviceScan::InclusiveSum(storage.data_ptr(), scan_bytes, x.data_ptr<float>(), y.data_ptr<float>() + 1, n);
  return y;
}
