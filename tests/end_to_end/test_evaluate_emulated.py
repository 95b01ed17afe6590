"""CUDA candidates evaluated on the CPU by the real command: a right one, a wrong one, and ones that a GPU may run over.

nvcc is hidden from the command: what it would say takes longer than all the rest. All kernels of a kind share a build.
"""

import pytest

from harness.store.results import ResultFilter, ResultStore

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.cpp_extension import load_inline\n"
# One extension for all: what a candidate does is chosen by a number.
CUDA = r"""
#include <torch/extension.h>

__global__ void add(const float* a, const float* b, float* out, int n, int mode) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int from = mode == 3 ? i + 1 : i;
  float x = from < n || mode == 3 ? a[from] : 0.0f;
  tile[threadIdx.x] = x;
  if (mode != 2) __syncthreads();
  float left = tile[255 - threadIdx.x];
  if (mode != 2) __syncthreads();
  tile[255 - threadIdx.x] = left;
  if (mode != 2) __syncthreads();
  volatile float* first = tile;
  while (mode == 4 && *first < 1e30f) *first = 0.0f;
  if (i < n) out[i] = (mode == 3 ? a[i] : tile[threadIdx.x]) + (mode == 1 ? 0.0f : b[i]);
}

torch::Tensor add_cuda(torch::Tensor a, torch::Tensor b, int64_t mode) {
  TORCH_CHECK(a.is_cuda() && b.is_cuda(), "expected CUDA tensors");
  auto out = torch::empty_like(a);
  int n = a.numel();
  add<<<(n + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n, mode);
  return out;
}
"""
BODY = f'''{HEAD}
ext = load_inline("emulated_add", cpp_sources="torch::Tensor add_cuda(torch::Tensor a, torch::Tensor b, int64_t mode);",
                  cuda_sources=r"""{CUDA}""", functions=["add_cuda"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        assert a.is_cuda and a.device.type == "cuda"
        return ext.add_cuda(a.cuda(), b, MODE)
'''
UNCOVERED = BODY.replace(
    "__shared__ float tile", 'asm volatile("tcgen05.fence::before_thread_sync;"); __shared__ float tile'
)
RIGHT, WRONG, RACY, BEYOND, ENDLESS = range(5)


def candidate(mode, source=BODY):
    return source.replace("MODE", str(mode))


@pytest.fixture
def evaluate(tmp_path, tiny_suite, write_run, run_harness, without_nvcc):
    """Evaluates candidates on the emulated device; their stored evaluations, by number, and what was printed."""

    def run(sources, *args):
        write_run("emulated", sources, language="cuda")
        base = ["evaluate", "emulated", "--problems-dir", tiny_suite.parent, *args]
        finished = run_harness(base, env=without_nvcc, timeout_s=800)
        assert finished.returncode == 0, finished.stderr
        with ResultStore.open(tmp_path / "results", read_only=True) as store:
            stored = {one.evaluation.subject.sample: one.evaluation for one in store.load_all(ResultFilter())}
        return stored, finished.stdout

    return run


@pytest.mark.slow
def test_right_wrong_racy_endless_and_unknown_kernels_each_get_their_verdict(evaluate, needs_compiler, tmp_path):
    sources = [candidate(RIGHT), candidate(WRONG), candidate(RACY), candidate(ENDLESS), candidate(RIGHT, UNCOVERED)]
    sources += [candidate(RIGHT), candidate(BEYOND)]
    evaluated, printed = evaluate(sources, "--call-timeout", "5", "--first-call-timeout", "5", "--gpu", "H100")
    outcomes = [evaluated[number].outcome.value for number in range(7)]
    assert outcomes == ["correct", "wrong_value", "wrong_value", "timeout", "not_run", "correct", "runtime_error"]
    assert any(one.check == "out_of_bounds" and one.severity == "fatal" for one in evaluated[6].findings)
    assert "tcgen05" in evaluated[4].message

    race = evaluated[2]
    assert race.message.startswith("cuda.cu:"), race.message
    assert any(one.severity == "fatal" and "race" in one.check for one in race.findings)

    right = evaluated[0]
    assert (right.subject.device, right.subject.workload, right.timing, right.work) == (
        "emulated",
        "reduced",
        None,
        None,
    )
    assert dict(right.environment)["emulated_gpu"] == "H100"
    assert any(one.check == "nvcc" and one.severity == "note" for one in right.findings)
    assert "emulated" in printed

    leaderboard = (tmp_path / "results" / "leaderboard.csv").read_text()
    assert leaderboard.count("emulated") >= 1


@pytest.mark.slow
def test_without_checks_a_race_that_gives_right_values_is_not_noticed(evaluate, needs_compiler):
    evaluated, _ = evaluate([candidate(RACY), candidate(BEYOND)], "--no-check")
    assert {one.outcome.value for one in evaluated.values()} <= {"correct", "wrong_value", "runtime_error"}
    assert not any("race" in finding.check for one in evaluated.values() for finding in one.findings)


def test_an_unknown_gpu_is_refused_with_those_that_can_be_emulated(call_harness, tiny_suite, tmp_path):
    (tmp_path / "c.py").write_text(candidate(RIGHT))
    args = ["evaluate", "--candidate", "c.py", "--problem", tiny_suite / "add.py", "--device", "emulated"]
    finished = call_harness([*args, "--gpu", "Voodoo 3"])
    assert finished.returncode == 2
    assert "unknown GPU 'Voodoo 3'" in finished.stderr
    assert "Traceback" not in finished.stderr


LARGE = """
import torch
from torch import nn

width = 4096


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(1024, width), torch.randn(1024, width)]


def get_init_inputs():
    return []
"""
BY_FOURS = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        fours = a.shape[1] // 4 * 4
        out[:, :fours] = a[:, :fours] + b[:, :fours]
        return out
"""
FOR_ITS_SIZES = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.view(1024, 4096) + b.view(1024, 4096)
"""
WRONG_AT_ALL_SIZES = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a - b
"""


@pytest.mark.slow
def test_kernel_specialised_for_problem_sizes_passes_at_similar_sizes(evaluate, tiny_suite):
    (tiny_suite / "add.py").write_text(LARGE)
    evaluated, _ = evaluate([HEAD + source for source in (BY_FOURS, FOR_ITS_SIZES, WRONG_AT_ALL_SIZES)])
    assert [evaluated[number].outcome.value for number in range(3)] == ["correct", "correct", "wrong_value"]
    warnings = [
        [one.message for one in evaluated[number].findings if one.check == "size_specialised"] for number in range(3)
    ]
    assert [len(found) for found in warnings] == [1, 1, 0]
    sizes = [dict(evaluated[number].environment)["workload_sizes"] for number in range(3)]
    assert sizes == ["width=512", "width=4096", "width=511"]
    assert warnings[0][0].startswith("wrong at width=511 (wrong_value: ")
    assert warnings[1][0].startswith("wrong at width=511 (runtime_error: ")


CHANNELS = """
import torch
from torch import nn

batch, channels, height, width = 128, 64, 128, 128


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(channels, 1, 1))

    def forward(self, x):
        return torch.softmax(x + self.bias, dim=1)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels]
"""
OF_CHANNELS = """
class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(channels, 1, 1))

    def forward(self, x):
        whole = torch.full((x.shape[0], COUNT, *x.shape[2:]), 1.0, device=x.device)
        whole[:, :x.shape[1]] = torch.exp(x + self.bias)
        return whole[:, :x.shape[1]] / whole.sum(dim=1, keepdim=True)
"""


@pytest.mark.slow
def test_kernel_specialised_for_channels_passes_if_channels_are_kept(evaluate, tiny_suite):
    """The whole problem costs too much for a CPU; its 64 channels with less of everything else do not."""
    (tiny_suite / "add.py").write_text(CHANNELS)
    evaluated, _ = evaluate([HEAD + OF_CHANNELS.replace("COUNT", str(count)) for count in (64, 65)])
    assert [evaluated[number].outcome.value for number in range(2)] == ["correct", "wrong_value"]
    findings = [evaluated[number].findings for number in range(2)]
    right, wrong = ([one for one in found if one.check == "size_specialised"] for found in findings)
    assert [one.severity for one in (*right, *wrong)] == ["warning", "note"]
    assert "channels=31" in right[0].message
    assert "channels=64" in dict(evaluated[0].environment)["workload_sizes"]
    assert "not evaluated at the problem's own sizes" in wrong[0].message


ROWS = f'''{HEAD}
CUDA = r"""
#include <torch/extension.h>

__global__ void add(const float* a, const float* b, float* out, int width) {{
  int i = blockIdx.x * width + threadIdx.x;
  out[i] = a[i] + b[i];
}}

torch::Tensor add_rows(torch::Tensor a, torch::Tensor b) {{
  auto out = torch::empty_like(a);
  int width = a.size(1);
  add<<<a.size(0), width>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), width);
  return out;
}}
"""
ext = load_inline("rows", cpp_sources="torch::Tensor add_rows(torch::Tensor a, torch::Tensor b);", cuda_sources=CUDA,
                  functions=["add_rows"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.add_rows(a, b)
'''


@pytest.mark.slow
def test_launch_too_large_only_at_problem_sizes_is_refused(evaluate, tiny_suite, needs_compiler):
    """A row of 511 elements fits into a block of threads; one of 4096, which nobody computes here, does not."""
    (tiny_suite / "add.py").write_text(LARGE)
    evaluated, _ = evaluate([ROWS])
    assert evaluated[0].outcome == "runtime_error"
    assert evaluated[0].message.startswith("at the problem's own sizes: ")
    assert "4096" in evaluated[0].message
    assert evaluated[0].correctness.passed
