"""Of which extensions it is sure that a tensor of the host must not reach their kernels, and how tensors are lent."""

from types import ModuleType

import pytest
import torch

from harness.worker.emulated.link import can_be_guarded, watch_functions
from harness.worker.emulated.tensors import TensorsOnGpu, is_on_host


@pytest.mark.parametrize(
    "source",
    [
        "k<<<1, 32>>>(x.data_ptr<float>());",
        'TORCH_CHECK(x.is_cuda() && y->is_cuda(), "on the GPU");',
        '#define CHECK_CUDA(x) AT_ASSERTM(x.type().is_cuda(), #x " must be a CUDA tensor")\nCHECK_CUDA(x);',
        "auto y = x.to(torch::kFloat32);",
        "auto y = torch::zeros({n}, torch::device(torch::kCUDA));",
    ],
)
def test_function_that_takes_any_tensor_is_guarded(source):
    assert can_be_guarded(source)


@pytest.mark.parametrize(
    "source",
    [
        "y = y.to(x.device());",
        "y = y . to ( torch::kCUDA );",
        "y = y.cuda();",
        "auto host = y->cpu();",
        "if (x.is_cuda()) { on_gpu(x); } else { on_host(x); }",
        "return x.is_cuda() ? on_gpu(x) : on_host(x);",
        "if (x.device().type() == torch::kCUDA) { on_gpu(x); }",
    ],
)
def test_function_that_may_move_tensors_is_not_guarded(source):
    assert not can_be_guarded(source)


def watch(function, source=""):
    """The function as one of an extension, and what was kept from its kernels: (address, bytes)."""
    module, kept = ModuleType("extension"), []
    module.run = function
    watch_functions(module, source, lambda *pages: kept.append(pages))
    return module.run, kept


def test_host_tensor_is_lent_in_separate_pages_and_writes_are_copied_back():
    lent = []

    def run(values, *, factor):
        lent.append((values[0].data_ptr(), values[0].stride(), values[0].tolist()))
        values[0].mul_(factor)
        return values[0].sum().clone()

    with TensorsOnGpu():
        run, kept = watch(run)
        x = torch.arange(6.0).reshape(2, 3).t()
        assert is_on_host(x)
        assert float(run([x], factor=2)) == 30.0
        assert x.tolist() == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]
    ((address, stride, before),) = lent
    assert address != x.data_ptr() and address % 4096 == 0 and stride == (1, 3) and before[1] == [1.0, 4.0]
    assert kept == [(address, 4096), (address, 0)]


def test_expanded_host_tensor_is_lent_and_pinned_one_is_passed_unchanged():
    with TensorsOnGpu():
        run, kept = watch(lambda x: x.sum().clone())
        assert float(run(torch.ones(1, 3).expand(4, 3))) == 12.0
        assert [size for _, size in kept] == [4096, 0]
        assert float(run(torch.ones(3).pin_memory())) == 3.0
        assert len(kept) == 2


def test_tensor_passed_to_cpp_has_an_unknown_location():
    with TensorsOnGpu():
        run, _ = watch(lambda x: x, "return x.to(torch::kCUDA);")
        assert (run(torch.ones(3)) + torch.ones(3, device="cuda")).tolist() == [2.0] * 3


def test_gpu_tensor_is_passed_unchanged_and_results_are_gpu_tensors():
    with TensorsOnGpu():
        run, kept = watch(lambda x: x + 1, "auto y = torch::empty_like(x);")
        x = torch.ones(3, device="cuda")
        with pytest.raises(RuntimeError, match="same device"):
            run(x) + torch.ones(3)
        assert kept == []


@pytest.mark.parametrize(
    "source",
    [
        "auto y = torch::zeros({3});", "y = y.to(x.device());",
        "torch::empty({1}, x.options().device(torch::kCPU));",
        "auto o = torch::TensorOptions().dtype(torch::kFloat32); return torch::full({3}, 1, o);",
    ],
)  # fmt: skip
def test_where_it_is_not_sure_nothing_is_refused_for_what_comes_back(source):
    with TensorsOnGpu():
        run, _ = watch(lambda: torch.zeros_like(torch.ones(3)).detach().numpy(), source)
        result = torch.from_numpy(run())
        assert (result + torch.ones(3, device="cuda")).tolist() == [1.0] * 3
