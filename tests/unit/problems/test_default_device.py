"""Code that cannot run with a GPU as torch's default device runs with the host's. The errors are those that torch
raises on a GPU; tests/gpu/test_gpu_problems.py runs such code there."""

import pytest
import torch

from harness.construction.weights import run_with_default

GPU = torch.device("cuda", 0)
ERRORS = (
    RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'"),
    TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory"),
    RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"),
    RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"),
    RuntimeError("\"addmv_impl_cuda\" not implemented for 'Long'"),
    NotImplementedError("Could not run 'aten::histogram' with arguments from the 'CUDA' backend."),
)


def run_where(allowed, error, tried):
    def run(default):
        tried.append(default.type)
        if default.type != allowed:
            raise error
        return default.type

    return run


@pytest.mark.parametrize("error", ERRORS)
def test_code_that_needs_the_host_runs_there(error):
    tried = []
    assert run_with_default(GPU, run_where("cpu", error, tried)) == "cpu"
    assert tried == ["cuda", "cpu"]


def test_code_that_runs_on_the_gpu_runs_once():
    tried = []
    assert run_with_default(GPU, run_where("cuda", ValueError(), tried)) == "cuda"
    assert tried == ["cuda"]


@pytest.mark.parametrize("error", [ValueError("no device"), RuntimeError("CUDA error: device-side assert triggered")])
def test_other_errors_are_raised_at_once(error):
    tried = []
    with pytest.raises(type(error)):
        run_with_default(GPU, run_where("cpu", error, tried))
    assert tried == ["cuda"]


def test_nothing_else_than_a_gpu_is_replaced():
    tried = []
    with pytest.raises(RuntimeError):
        run_with_default(torch.device("meta"), run_where("cpu", ERRORS[0], tried))
    assert tried == ["meta"]
