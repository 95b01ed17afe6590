"""What a candidate sees of the GPU that is not there."""

import json
import subprocess
import sys

import pytest

HEAD = """
import copy, json, torch
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from torch import nn
from harness.worker.emulated.cuda import install

install({"name": "NVIDIA A100", "major": 8, "minor": 0, "total_memory": 1 << 30, "multi_processor_count": 108})
seen = {}
"""
# One process for all of them: importing torch is what takes time.
PARTS = {
    "moved": "[x.device, x.cuda().device, x.cuda().cpu().device, x.to(0).device, x.to(torch.float64).device]",
    "made": "[torch.zeros(2, device='cuda:0').device, torch.zeros(2, device='cuda').to('cpu').device]",
    "is_cuda": "[x.is_cuda, y.is_cuda, (x.cuda() + 1).is_cuda, (x + 1).is_cuda, (y + torch.tensor(2.0)).is_cuda]",
    "mixed": "[refuse(lambda: x + y), refuse(lambda: nn.Linear(3, 2).cuda()(x)), refuse(lambda: torch.cat([y, x])),"
    " refuse(lambda: y.masked_fill(x > 0, 0.0))]",
    "mixed_rightly": "[y[torch.arange(2)].is_cuda, torch.zeros(3, device='cuda').copy_(x).is_cuda,"
    " (x.type_as(y) + y).is_cuda, torch.where(y > 0, y, torch.tensor(0.0)).is_cuda, x.expand_as(y).is_cuda,"
    " (from_array() + y).is_cuda]",
    "array": "[refuse(y.numpy), y.cpu().numpy().tolist(), x.numpy().tolist()]",
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
    "array_of_host": "[np.asarray(y.cpu(), dtype=np.float64).tolist(), np.sqrt(x).tolist()]",
    "packed": "[packed().is_cuda]",
    "moved_like": "[nn.Linear(3, 2).to(y)(y).is_cuda, (x.to(from_array()) + y).is_cuda]",
    "called_back": "[called_back(), back(), in_thread()]",
    "keywords": "[torch.cuda.current_stream(device=y.device).query(), torch.cuda.get_device_name(device=0),"
    " torch.cuda.is_current_stream_capturing(), torch.cuda.manual_seed(seed=3), y.record_stream(torch.cuda.Stream())]",
    "in_float32": "[autocast_of(torch.softmax), autocast_of(exp_in_place), torch.get_autocast_dtype('cuda')]",
    "attention": "[attend().is_cuda]",
    "scripted": "[torch.jit.script(check)(y).is_cuda]",
    "deep": "[[one.is_cuda for one in copy.deepcopy([x, y])], copy.deepcopy({'x': x, 'y': y})['x'].is_cuda]",
    "sparse": "[(torch.sparse_coo_tensor(torch.tensor([[0, 2]]), y[:2], (3,)).to_dense() + y).is_cuda]",
    "pinned_copy": "[x.pin_memory() is x, x.pin_memory().is_pinned(), torch.empty(2, pin_memory=True).is_cuda]",
    "meta": "[torch.empty(2, device='meta').device]",
    "lazy": "[nn.LazyLinear(2).cuda()(y).is_cuda]",
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
    except (RuntimeError, TypeError) as error:
        return str(error)[:60]

def packed():
    lengths = torch.tensor([3, 1])
    rows = nn.utils.rnn.pack_padded_sequence(torch.ones(2, 3, 4, device="cuda"), lengths, batch_first=True)
    out, counts = nn.utils.rnn.pad_packed_sequence(nn.LSTM(4, 5).cuda()(rows)[0], batch_first=True)
    assert (counts + lengths).tolist() == [6, 2]
    return out + y[0]

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        assert grad.is_cuda and torch.ones(1, device="cuda").is_cuda
        return grad * 2

def back():
    a = torch.ones(3, device="cuda", requires_grad=True)
    Doubled.apply(a).sum().backward()
    return (a.grad + y).tolist()

def called_back():
    @torch.library.custom_op("emulated_test::h", mutates_args=())
    def h(a: torch.Tensor) -> torch.Tensor:
        assert a.is_cuda
        return a + torch.ones(3, device="cuda")
    return h(y).tolist()

def in_thread():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: (torch.ones(3, device="cuda") + y).is_cuda).result()

def autocast_of(function):
    with torch.autocast("cuda"):
        return function(y.half(), dim=0).dtype

def exp_in_place(a, dim):
    return a.exp_()

def attend():
    q = torch.ones(1, 1, 2, 4, device="cuda")
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        return nn.functional.scaled_dot_product_attention(q, q, q)

def check(a):
    assert a.is_cuda
    return a + 1

def from_array():
    return torch.from_numpy(x.numpy())

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
    "mixed": ["Expected all tensors to be on the same device, but found at "] * 4,
    "mixed_rightly": [True, True, True, True, False, True],
    "array": ["can't convert cuda:0 device type tensor to numpy. Use Tensor", [1.0] * 3, [1.0] * 3],
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
    "array_of_host": [[1.0] * 3, [1.0] * 3],
    "packed": [True],
    "moved_like": [True, True],
    "called_back": [[2.0] * 3, [3.0] * 3, True],
    "keywords": [True, "NVIDIA A100", False, None, None],
    "in_float32": ["torch.float32", "torch.float16", "torch.float16"],
    "attention": [True],
    "scripted": [True],
    "deep": [[False, True], False],
    "sparse": [True],
    "pinned_copy": [False, True, False],
    "meta": ["meta"],
    "lazy": [True],
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
