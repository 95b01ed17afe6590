"""What a candidate sees of the GPU that is not there."""

import json
import subprocess
import sys

import pytest

HEAD = """
import json, torch
from torch import nn
from harness.worker.emulated_cuda import install

install({"name": "NVIDIA A100", "major": 8, "minor": 0, "total_memory": 1 << 30, "multi_processor_count": 108})
seen = {}
"""
# One process for all of them: importing torch is what takes time.
PARTS = {
    "moved": "[x.device, x.cuda().device, x.cuda().cpu().device, x.to(0).device, x.to(torch.float64).device]",
    "made": "[torch.zeros(2, device='cuda:0').device, torch.zeros(2, device='cuda').to('cpu').device]",
    "is_cuda": "[x.is_cuda, x.cuda().is_cuda, (x.cuda() + 1).is_cuda, (x + 1).is_cuda, (x + x.cuda()).is_cuda]",
    "moving_copies": "[x.cuda() is x, y.cuda() is y, y.to('cuda', non_blocking=True) is y, x.cuda().equal(y)]",
    "as_tensor": "[torch.as_tensor(y) is y, torch.as_tensor(x, device='cuda').is_cuda, x.is_cuda, y.is_cuda]",
    "modules": "[weight(lambda m: m.cuda()), weight(lambda m: m.to('cuda')), weight(lambda m: m.cuda().cpu())]",
    "default": "[default(), torch.zeros(2).device, default_for_all(), torch.zeros(2).device]",
    "asked": "[torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(),"
    " torch.cuda.get_device_capability(), torch.cuda.get_device_properties(0).multi_processor_count]",
    "streams": "[torch.cuda.current_stream().cuda_stream, streams() >= 0]",
    "autocast": "[autocast(), autocast(torch.bfloat16)]",
    "generator": "[torch.rand(2, device='cuda', generator=torch.Generator(device='cuda').manual_seed(1)).is_cuda]",
    "compiled": "[float(torch.compile(lambda a: a + 1)(y)[0]), float(torch.compile(mode='x')(lambda a: a + 1)(y)[0])]",
    "graph": "[refuse(torch.cuda.CUDAGraph)]",
    "library": "[library(), custom().is_cuda]",
    "pinned": "[torch.empty(2, pin_memory=True).device, x.pin_memory().device]",
    "seeded": "[seeded() == seeded()]",
    "recurrent": "[recur(nn.LSTM(3, 2).cuda()), recur(nn.GRU(3, 2).to('cuda'))]",
}
FUNCTIONS = """
x, y = torch.ones(3), torch.ones(3, device="cuda")

def default():
    with torch.device("cuda"):
        return torch.zeros(2).device

def default_for_all():
    torch.set_default_device("cuda")
    try:
        return torch.nn.functional.one_hot(torch.arange(3)).device
    finally:
        torch.set_default_device("cpu")

def weight(move):
    return next(move(nn.Linear(2, 3)).parameters()).device

def streams():
    stream, begin, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream), torch.cuda.device(y.device):
        begin.record()
        end.record(stream)
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    return begin.elapsed_time(end)

def autocast(dtype=None):
    with torch.autocast("cuda", dtype=dtype):
        return (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype

def refuse(what):
    try:
        what()
    except RuntimeError as error:
        return str(error)

def library():
    made = torch.library.Library("emulated_test", "DEF")
    made.define("f(Tensor a) -> Tensor")
    made.impl("f", lambda a: a + 1, "CUDA")
    return float(torch.ops.emulated_test.f(y)[0])

def custom():
    @torch.library.custom_op("emulated_test::g", mutates_args=(), device_types="cuda")
    def g(a: torch.Tensor) -> torch.Tensor:
        return a * 2
    return g(y)

def recur(layer):
    return layer(torch.zeros(4, 1, 3, device="cuda"))[0].is_cuda

def seeded():
    torch.cuda.manual_seed(3)
    return torch.rand(2, device="cuda").tolist()
"""
EXPECTED = {
    "moved": ["cpu", "cuda:0", "cpu", "cuda:0", "cpu"],
    "made": ["cuda:0", "cpu"],
    "is_cuda": [False, True, True, False, True],
    "moving_copies": [False, True, True, True],
    "as_tensor": [True, True, False, True],
    "modules": ["cuda:0", "cuda:0", "cpu"],
    "default": ["cuda:0", "cpu", "cuda:0", "cpu"],
    "asked": [True, 1, "NVIDIA A100", [8, 0], 108],
    "streams": [0, True],
    "autocast": ["torch.float16", "torch.bfloat16"],
    "generator": [True],
    "compiled": [2.0, 2.0],
    "graph": ["CUDA graphs are not covered by the emulated device"],
    "library": [2.0, True],
    "pinned": ["cpu", "cpu"],
    "seeded": [True],
    "recurrent": [True, True],
}


@pytest.fixture(scope="module")
def seen():
    parts = "".join(f"seen[{name!r}] = {part}\n" for name, part in PARTS.items())
    program = f"{HEAD}{FUNCTIONS}{parts}print(json.dumps(seen, default=str))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return json.loads(finished.stdout)


@pytest.mark.parametrize("name", PARTS)
def test_a_program_for_a_gpu_finds_what_it_expects(seen, name):
    assert seen[name] == EXPECTED[name]
