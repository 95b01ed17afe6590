"""How fast the emulated device builds and runs, against its goals.

    python benchmarks/emulated.py [--checked] [--cache FOLDER] [--threads N]
    python benchmarks/emulated.py --watch

Rows: elementwise over 16 M elements, a tiled matmul of 1024 in shared memory, a softmax with dynamic shared memory over
4 M, row sums by shuffles over 16 M, each the best of three; then building: a new candidate, as its median of three. The
kit, which is made once per torch, compiler and flags, is made first and shown in a row of its own. Goals are for two
quiet cores. `--checked` runs smaller sizes in a build that checks each access, and has no goals.

`--watch` saves a Triton kernel that adds 64x65 elements again and again while `harness evaluate --watch` runs: seconds
from the save to the verdict, the median and the most of five after the first verdict.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console
from rich.table import Table

from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest
from harness.emulator import Emulation
from harness.hardware.gpus import find_gpu_model
from harness.sandbox.policy import clean_environment, interpreter_folders, probe_isolation

CUDA = """
#include <torch/extension.h>
#define TILE 16
// {n}
__global__ void relu_bias(const float* x, float* y, int n, float bias) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f) + bias;
}}
torch::Tensor elementwise(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  int n = x.numel();
  relu_bias<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, 0.5f);
  return y;
}}
__global__ void multiply(const float* A, const float* B, float* C, int N) {{
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float s = 0;
  for (int t = 0; t < N; t += TILE) {{
    a[threadIdx.y][threadIdx.x] = A[row * N + t + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = B[(t + threadIdx.y) * N + col];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) s += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }}
  C[row * N + col] = s;
}}
torch::Tensor matmul(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  int n = x.size(0);
  const float* p = x.data_ptr<float>();
  multiply<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(p, p, y.data_ptr<float>(), n);
  return y;
}}
__global__ void soft(const float* x, float* y, int n) {{
  extern __shared__ float s[];
  const float* r = x + (size_t)blockIdx.x * n;
  float m = -INFINITY, t = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, r[i]);
  s[threadIdx.x] = m;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {{
    if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]);
    __syncthreads();
  }}
  m = s[0];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) t += expf(r[i] - m);
  s[threadIdx.x] = t;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {{
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }}
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = expf(r[i] - m) / s[0];
}}
torch::Tensor softmax(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  soft<<<x.size(0), 256, 256 * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}}
__global__ void sums(const float* x, float* y, int n) {{
  __shared__ float part[8];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[(size_t)blockIdx.x * n + i];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {{
    for (int i = 1; i < 8; ++i) v += part[i];
    y[blockIdx.x] = v;
  }}
}}
torch::Tensor row_sums(torch::Tensor x) {{
  auto y = torch::empty({{x.size(0)}}, x.options());
  sums<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}}
"""
FUNCTIONS = ("elementwise", "matmul", "softmax", "row_sums")
CPP = "".join(f"torch::Tensor {name}(torch::Tensor x);\n" for name in FUNCTIONS)
# Name: rows and columns of the input, divisor of the rows in a checked build, goal in seconds, what is right.
CASES: dict[str, tuple[int, int, int, float | None, Callable[[torch.Tensor], torch.Tensor]]] = {
    "elementwise": (4096, 4096, 16, 0.2, lambda x: torch.relu(x) + 0.5),
    "matmul": (1024, 1024, 8, 20.0, lambda x: x @ x),
    "softmax": (1024, 4096, 16, 2.0, lambda x: torch.softmax(x, 1)),
    "row_sums": (4096, 4096, 16, None, lambda x: x.sum(1)),
}
BUILD_GOAL_S = 5.0


WATCH_GOAL_S = 3.0
SAVES = 5
PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y
def get_inputs():
    return [torch.randn(64, 65), torch.randn(64, 65)]
def get_init_inputs():
    return []
"""
KERNEL = """
import torch, triton, triton.language as tl
@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)
class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), BLOCK=1024)
        return z
"""
WATCH = "from harness.cli.main import run_command; run_command(['evaluate', 'k.py', '--problem', 'p.py', '--watch'])"


def main() -> None:
    options = parse_options()
    if options.watch:
        watch()
        return
    table = Table("what", "seconds", "goal", box=None)
    with tempfile.TemporaryDirectory() as folder:
        builder = make_builder(Path(options.cache or folder), options.checked)
        kit_s, library = build(builder, 0)
        module = load(library, options.threads)
        for name in FUNCTIONS:
            seconds, size = run_case(module, name, options.checked)
            add_row(table, f"{name} {size}", seconds, None if options.checked else CASES[name][3])
        builds = statistics.median(build(builder, number)[0] for number in (1, 2, 3))
    add_row(table, "build of a new candidate", builds, None if options.checked else BUILD_GOAL_S)
    add_row(table, "first build, with the kit", kit_s, None)
    Console().print(table)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checked", action="store_true")
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--cache")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def watch() -> None:
    verdict_s: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p.py").write_text(PROBLEM)
        saved_s = save(folder, 0)
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", WATCH],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "k.py: " in line and "outputs" not in line:
                verdict_s.append(time.monotonic() - saved_s)
            elif "Details" in line:
                if len(verdict_s) > SAVES:
                    break
                time.sleep(1)
                saved_s = save(folder, len(verdict_s))
        process.send_signal(signal.SIGINT)
        process.wait()
    table = Table("watch: from the save to", "median s", "most s", "goal", box=None)
    times = verdict_s[1:]
    middle = statistics.median(times) if times else math.nan
    verdict = f"{WATCH_GOAL_S:g} {'reached' if middle <= WATCH_GOAL_S else 'MISSED'}"
    table.add_row("the verdict", f"{middle:.1f}", f"{max(times, default=math.nan):.1f}", verdict)
    Console().print(table)


def save(folder: Path, number: int) -> float:
    """Return the time."""
    (folder / "k.py").write_text(f"{KERNEL}# {number}\n")
    return time.monotonic()


def make_builder(cache: Path, checked: bool) -> Builder:
    return Builder(
        cache=cache,
        toolchain=probe_toolchain(),
        wrap=probe_isolation().wrap,
        readable=interpreter_folders(),
        environment=clean_environment,
        emulate=Emulation(target=find_gpu_model("A100"), checked=checked),
    )


def build(builder: Builder, number: int) -> tuple[float, str]:
    """Seconds and library of a source that was never built."""
    request = BuildRequest(
        name="measured",
        cpp_sources=(CPP,),
        cuda_sources=(CUDA.format(n=f"{number} {time.time_ns()}"),),
        functions=tuple((name, "") for name in FUNCTIONS),
    )
    began = time.perf_counter()
    result = builder.build(request)
    if result.extension is None:
        raise SystemExit(result.log)
    return time.perf_counter() - began, result.extension


def load(library: str, threads: int) -> ModuleType:
    spec = importlib.util.spec_from_file_location("measured", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ctypes.CDLL(library).harness_emulator_configure(f'{{"threads": {threads}, "time_limit_s": 600}}'.encode())
    return module


def run_case(module: ModuleType, name: str, checked: bool) -> tuple[float, str]:
    rows, columns, divisor, _, expected = CASES[name]
    rows //= divisor if checked else 1
    columns = rows if name == "matmul" else columns
    x = torch.randn(rows, columns)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        found = getattr(module, name)(x)
        times.append(time.perf_counter() - began)
    torch.testing.assert_close(found, expected(x), rtol=1e-3, atol=1e-3)
    return min(times), f"{rows} x {columns}"


def add_row(table: Table, what: str, seconds: float, goal: float | None) -> None:
    verdict = "" if goal is None else f"{goal:g} {'reached' if seconds <= goal else 'MISSED'}"
    table.add_row(what, f"{seconds:.3f}", verdict)


if __name__ == "__main__":
    main()
