// Refuses float tensors.
// forward: x + 1
// inputs: x = torch.randn(6, 6)
// expected: runtime_error
#include <torch/extension.h>

torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.scalar_type() == torch::kHalf, "expected half, got ", x.scalar_type());
  return x;
}
