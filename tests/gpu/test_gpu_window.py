"""Calls in the evaluator's window, with programs that need no extension: what a candidate leaves behind, where its
outputs lie, and known speedups."""

import time

import pytest

pytestmark = pytest.mark.gpu

PROBLEM = """
import torch
from torch import nn

count = 1 << 20


class Model(nn.Module):
    def forward(self, a, b):
        torch.cuda._sleep({cycles})
        return a + b


def get_inputs():
    return [torch.randn(count, device="cuda"), torch.randn(count, device="cuda")]


def get_init_inputs():
    return []
"""
CYCLES = 2_000_000  # about a millisecond
ADD = PROBLEM.format(cycles=1000)
HEAD = "import ctypes\nimport torch\nfrom torch import nn\n"
HONEST = f"""{HEAD}
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""
ALLOWED_S = 10.0  # for an honest program after one that spoilt the device


def body(lines):
    indented = "\n".join(f"        {line}" for line in lines)
    return f"{HEAD}\nclass ModelNew(nn.Module):\n    def forward(self, a, b):\n{indented}\n"


@pytest.fixture(scope="module")
def gpu_bench(open_bench):
    return open_bench(isolation="auto", device="cuda:0", call_s=5.0, load_s=60.0)


SPOILERS = {
    "an endless kernel": (["torch.cuda._sleep(10**14)", "return a + b"], {"timeout"}),
    "an endless kernel on a stream of its own": (
        ["with torch.cuda.stream(torch.cuda.Stream()):", "    torch.cuda._sleep(10**14)", "return a + b"],
        {"timeout"},
    ),
    "an index out of bounds": (["return a[torch.full_like(a, 1 << 40, dtype=torch.long)] + b"], {"runtime_error"}),
    "all memory": (
        ["self.kept = []", "while True:", "    self.kept.append(torch.empty(1 << 28, device='cuda'))"],
        {"out_of_memory"},
    ),
    "many streams and graphs": (
        ["self.kept = [torch.cuda.Stream() for _ in range(300)]", "[torch.cuda._sleep(1000) for _ in self.kept]",
         "return a + b"],
        {"correct"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILERS)
def test_legitimate_program_is_unaffected_by_a_previous_device_failure(gpu_bench, name):
    lines, outcomes = SPOILERS[name]
    spoilt = gpu_bench.evaluate(body(lines), ADD)
    assert spoilt.outcome in outcomes, spoilt.message
    began_s = time.monotonic()
    honest = gpu_bench.evaluate(HONEST, ADD)
    assert honest.outcome == "correct", honest.message
    assert time.monotonic() - began_s < ALLOWED_S


def test_a_kernel_that_is_left_running_is_not_its_opponents_problem(gpu_bench):
    left = body(
        [
            "if not hasattr(self, 'own'): self.own = torch.cuda.Stream(); self.calls = 0",
            "self.calls += 1",
            "out = a + b",
            "torch._C._cuda_synchronize()",
            "return out",
        ]
    )
    evaluation = gpu_bench.evaluate(left, PROBLEM.format(cycles=CYCLES), time=True)
    assert evaluation.outcome == "correct", evaluation.message


def test_work_that_is_not_waited_for_is_missing_in_the_snapshot(gpu_bench):
    early = body(
        [
            "if not hasattr(self, 'own'):",
            "    self.own = torch.cuda.Stream()",
            "    torch._C._cuda_synchronize = lambda: None",
            "out = torch.empty_like(a)",
            "with torch.cuda.stream(self.own):",
            "    torch.cuda._sleep(20_000_000)",
            "    torch.add(a, b, out=out)",
            "return out",
        ]
    )
    evaluation = gpu_bench.evaluate(early, ADD)
    assert evaluation.outcome in ("wrong_value", "suspect"), evaluation.message


ON_ANOTHER_STREAM = [
    "if not hasattr(self, 'own'):",
    "    self.own = torch.cuda.Stream()",
    "self.own.wait_stream(torch.cuda.current_stream())",
    "with torch.cuda.stream(self.own):",
    "    out = a + b",
]


def test_short_work_on_an_unjoined_stream_is_wrong(gpu_bench):
    evaluation = gpu_bench.evaluate(body([*ON_ANOTHER_STREAM, "return out"]), ADD)
    assert evaluation.outcome == "wrong_value", evaluation.message
    assert "stream_order" in [finding.check for finding in evaluation.findings], evaluation.findings


@pytest.mark.parametrize(
    "wait",
    [
        "torch.cuda.current_stream().wait_stream(self.own)",
        "self.own.synchronize()",
        "torch.cuda.set_stream(self.own)",
    ],
)
def test_work_on_another_stream_that_is_waited_for_is_correct(gpu_bench, wait):
    evaluation = gpu_bench.evaluate(body([*ON_ANOTHER_STREAM, wait, "return out"]), ADD)
    assert evaluation.outcome == "correct", evaluation.message


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_known_speedup_is_recovered(gpu_bench, share):
    mine = PROBLEM.format(cycles=int(CYCLES * share)).replace("class Model(", "class ModelNew(")
    evaluation = gpu_bench.evaluate(mine, PROBLEM.format(cycles=CYCLES), time=True)
    assert evaluation.outcome == "correct", evaluation.message
    timing = evaluation.timing
    by_reports = [
        sum(getattr(block, f"{side}_reported_us") for block in timing.blocks) for side in ("baseline", "candidate")
    ]
    assert timing.speedup == pytest.approx(by_reports[0] / by_reports[1], rel=0.05)
    assert timing.speedup == pytest.approx(1 / share, rel=0.1)
    assert timing.verdict == ("tie" if share == 1.0 else "faster")


def test_outputs_in_memory_that_cannot_be_shared_are_copied_by_the_worker(gpu_bench):
    own = body(
        [
            "runtime = ctypes.CDLL('libcudart.so.' + torch.version.cuda.split('.')[0])",
            "address = ctypes.c_void_p()",
            "assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(a.numel() * 4)) == 0",
            "holder = type('Holder', (), {'__cuda_array_interface__': {'shape': tuple(a.shape), 'typestr': '<f4',",
            "    'data': (address.value, False), 'strides': None, 'version': 3}})()",
            "out = torch.as_tensor(holder, device='cuda')",
            "return torch.add(a, b, out=out)",
        ]
    )
    evaluation = gpu_bench.evaluate(own, ADD)
    assert evaluation.outcome == "correct", evaluation.message


def test_an_emptied_cache_does_not_spoil_the_view_of_the_workers_memory(gpu_bench):
    evaluation = gpu_bench.evaluate(body(["out = a + b", "torch.cuda.empty_cache()", "return out"]), ADD)
    assert evaluation.outcome == "correct", evaluation.message
