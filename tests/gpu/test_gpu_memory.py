"""Device memory on a GPU: the evaluator's own is what it was after every evaluation, and what fits KernelBench's
evaluator is evaluated in as much."""

from pathlib import Path

import pytest

from harness.evaluation.settings import TimingPlan
from harness.sandbox.devices import CudaDevice
from harness.tensors.values import HOST, copy_to

pytestmark = pytest.mark.gpu

GIB = 1 << 30
SLACK_BYTES = 4 << 20  # pages of the driver's own
PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(1 << {exponent}, device="cuda")]


def get_init_inputs():
    return []
"""
MIDDLE = PROBLEM.format(exponent=26)  # 256 MiB in and out


def body(*lines, init="pass"):
    indented = "\n".join(f"        {line}" for line in lines)
    return f"""import os
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
{indented}
"""


HONEST = body("return torch.relu(x)")
ENDS = {
    "correct": HONEST,
    "wrong_value": body("return x"),
    "wrong_shape": body("return torch.relu(x)[:5]"),
    "out_of_memory": body("return [torch.empty(1 << 32, device='cuda') for _ in range(64)]"),
    "runtime_error": body("os._exit(3)"),
}


@pytest.fixture(scope="module")
def gpu_bench(open_bench):
    return open_bench(isolation="auto", device="cuda:0", call_s=30.0, load_s=60.0)


def allocated(bench):
    import torch

    torch.cuda.synchronize()
    return torch.cuda.memory_allocated(bench.device.torch_device), torch.cuda.memory_reserved(bench.device.torch_device)


@pytest.mark.parametrize("time", [False, True])
@pytest.mark.parametrize("outcome", ENDS)
def test_the_evaluators_own_memory_is_no_more_than_before(gpu_bench, outcome, time):
    """One reference is kept for the next candidate with the same inputs."""
    gpu_bench.evaluate(HONEST, MIDDLE, time=True)  # what is measured once per device is measured here
    before = allocated(gpu_bench)
    evaluation = gpu_bench.evaluate(ENDS[outcome], MIDDLE, time=time)
    assert evaluation.outcome == outcome, evaluation.message
    now = allocated(gpu_bench)
    assert all(mine <= usual for mine, usual in zip(now, before, strict=True)), (now, before)


PRODUCT = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x @ x


def get_inputs():
    return [torch.randn(1 << {exponent}, 1 << {exponent}, device="cuda")]


def get_init_inputs():
    return []
"""


def test_a_large_problem_leaves_no_unused_block_of_its_size(gpu_bench):
    """Its reference is kept, with truths, for the next candidate."""
    problem = PRODUCT.format(exponent=13)
    assert gpu_bench.evaluate(problem.replace("class Model(", "class ModelNew("), problem).outcome == "correct"
    used, reserved = allocated(gpu_bench)
    assert reserved - used < 1 << 27, (used, reserved)  # half of an input


def test_the_memory_of_the_device_is_what_it_was_before(gpu_bench):
    def count_used_bytes():
        gpu_bench.workers.release()  # those that wait for the next program
        return gpu_bench.device.count_used_bytes()

    gpu_bench.evaluate(HONEST, MIDDLE)
    before = count_used_bytes()
    for source in ENDS.values():
        gpu_bench.evaluate(source, MIDDLE)
    assert count_used_bytes() <= before + SLACK_BYTES


def test_a_candidate_that_fills_the_device_is_no_error_of_the_evaluators(gpu_bench):
    fills = body(
        "while True:",
        "    try: self.kept.append(torch.empty(1 << 26, device='cuda'))",
        "    except torch.OutOfMemoryError: break",
        "self.kept.pop()",
        "return torch.relu(x)",
        init="self.kept = []",
    )
    evaluation = gpu_bench.evaluate(fills, MIDDLE)
    assert evaluation.outcome in ("out_of_memory", "correct"), evaluation.message
    honest = gpu_bench.evaluate(HONEST, MIDDLE)
    assert honest.outcome == "correct", honest.message


def test_out_of_memory_names_what_the_candidate_held(gpu_bench):
    evaluation = gpu_bench.evaluate(ENDS["out_of_memory"], MIDDLE)
    assert "its process holds" in evaluation.message


@pytest.mark.parametrize("budget_gib", [3.5, 6.0])
@pytest.mark.parametrize("source", [HONEST, body("return x.abs()")], ids=["right", "wrong"])
def test_verdicts_are_the_same_with_little_memory(open_bench, budget_gib, source):
    device = CudaDevice(memory_bytes=int(budget_gib * GIB))
    bench = open_bench(isolation="auto", device=device, call_s=30.0, load_s=60.0)
    evaluation = bench.evaluate(source, MIDDLE, time=True, plan=TimingPlan(budget_s=2.0, allow_load=True))
    assert evaluation.outcome == ("correct" if source is HONEST else "wrong_value"), evaluation.message
    assert any(one.check == "memory_plan" for one in evaluation.findings)


def test_inputs_and_outputs_of_a_tenth_of_the_device_each_are_evaluated(gpu_bench):
    """KernelBench's evaluator has inputs, two outputs and a few temporary tensors of the same size on the device."""
    import torch

    total_bytes = torch.cuda.get_device_properties(0).total_memory
    exponent = (total_bytes // 10 // 4).bit_length() - 1
    evaluation = gpu_bench.evaluate(HONEST, PROBLEM.format(exponent=exponent), time=True)
    assert evaluation.outcome == "correct", evaluation.message


POOLING = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, 8)


def get_inputs():
    return [torch.rand(8, 52, 2048, 2048, device="cuda")]


def get_init_inputs():
    return []
"""


def test_inputs_of_two_thirds_of_the_free_memory_are_evaluated(gpu_bench):
    """They exist once on the device at any time."""
    import torch

    free_bytes, _ = torch.cuda.mem_get_info(0)
    held = torch.empty(free_bytes - 10 * GIB, dtype=torch.uint8, device="cuda:0")
    evaluation = gpu_bench.evaluate(POOLING.replace("class Model(", "class ModelNew("), POOLING)
    assert evaluation.outcome == "correct", evaluation.message
    del held
    torch.cuda.empty_cache()


MANAGED = """import ctypes
import torch
from torch import nn

runtime = ctypes.CDLL(f"libcudart.so.{{torch.version.cuda.split('.')[0]}}")

class Place:
    def __init__(self, like):
        self.address = ctypes.c_void_p()
        assert runtime.cudaMallocManaged(ctypes.byref(self.address), ctypes.c_size_t(like.numel() * 4), 1) == 0
        self.__cuda_array_interface__ = {{
            "shape": tuple(like.shape), "typestr": "<f4", "data": (self.address.value, False), "version": 3,
        }}

    def __del__(self):
        runtime.cudaFree(self.address)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.clamp_min(x, 0, out=torch.as_tensor(Place(x), device=x.device))
        {last}
        return y
"""


@pytest.mark.parametrize(("last", "outcome"), [("pass", "correct"), ("x[5] = 3.0", "wrong_value")])
def test_large_outputs_that_cannot_be_mapped_take_the_place_of_the_inputs(gpu_bench, last, outcome):
    evaluation = gpu_bench.evaluate(MANAGED.format(last=last), PROBLEM.format(exponent=28))
    assert evaluation.outcome == outcome, evaluation.message


def test_a_problem_larger_than_the_device_is_not_run(gpu_bench):
    evaluation = gpu_bench.evaluate(HONEST, PROBLEM.format(exponent=40))
    assert evaluation.outcome == "not_run", evaluation.message
    assert "takes at least" in evaluation.message


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_large_copies_in_host_memory_are_pinned_until_they_are_unused(dtype):
    import torch

    rows = torch.randn(1 << 14, 1 << 14, device="cuda").to(getattr(torch, dtype))[:, : 1 << 13]
    before_kib = read_resident_kib()
    copy = copy_to(rows, HOST)
    assert copy.is_pinned()
    assert copy.stride() == rows.stride()
    assert torch.equal(copy, rows.cpu())
    part = copy[5]
    del copy
    assert part.is_pinned()
    del part
    assert read_resident_kib() <= before_kib + (64 << 10)


def read_resident_kib():
    """Anonymous memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
