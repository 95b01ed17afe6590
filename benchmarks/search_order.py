"""Whether a search reports the true order of its programs, and accepts no equal one as better.

Run on an idle machine with a GPU and nvcc: python benchmarks/search_order.py [steps|equal] [--device cuda:0]
steps: four CUDA programs for each of six problems, from a naive one to an optimised one, as the turns of
`harness run --strategy optimise`. Goal: of two programs whose times differ by 5 % or more, the faster one has the
higher speedup, and the best turn is the fastest program. The true times are those of the same kernels in this process:
CUDA events, caches flushed before each call.
equal: one program, then 20 with the same kernel and a function that nobody calls. Goal: none is accepted as better.
Other options go to `harness run`, such as --no-profile.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from harness.builder.toolchain import find_cuda_home
from harness.sandbox.devices import Device, open_device

ROWS = COLUMNS = 8192
DIFFERENT = 0.05
REPEATS = 20
EQUAL_PROGRAMS = 20

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [torch.randn({rows}, {columns})]


def get_init_inputs():
    return []


"""
ANSWER = '''```python
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
{kernels}
torch::Tensor forward(torch::Tensor x) {{
    auto y = torch::empty({shape}, x.options());
    run(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1), at::cuda::getCurrentCUDAStream());
    return y;
}}
"""
extension = load_inline(
    name="turn", cpp_sources="torch::Tensor forward(torch::Tensor x);", cuda_sources=source, functions=["forward"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.forward(x)
```
'''
RUN = "static void run(const float* x, float* y, int rows, int columns, cudaStream_t stream) { %s }\n"
ENTRY = """
extern "C" void entry(const float* x, float* y, int rows, int columns) { run(x, y, rows, columns, 0); }
"""

# Reductions of a row by all threads of a block.
BLOCK = """
template <typename Join> __device__ float reduce(float value, Join join) {
    __shared__ float shared[1024];
    __syncthreads();
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    return shared[0];
}
struct Add { __device__ float operator()(float a, float b) const { return a + b; } };
struct Max { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
"""
ROW_IN_REGISTERS = """
template <int PER_THREAD> __device__ void load(const float* x, long row, int columns, float4* kept) {
    const float4* from = reinterpret_cast<const float4*>(x + row * columns);
    #pragma unroll
    for (int i = 0; i < PER_THREAD; i++) kept[i] = from[threadIdx.x + i * blockDim.x];
}
"""
# A row per thread, or the threads of a block side by side in a row: FROM and STEP.
SOFTMAX = (
    BLOCK
    + """
__global__ void softmax(const float* x, float* y, int rows, int columns) {
    long row = ROW;
    if (row >= rows) return;
    const float* from = x + row * columns;
    float most = -INFINITY, sum = 0;
    for (int c = FROM; c < columns; c += STEP) most = fmaxf(most, from[c]);
    most = JOIN(most, Max());
    for (int c = FROM; c < columns; c += STEP) sum += expf(from[c] - most);
    sum = JOIN(sum, Add());
    for (int c = FROM; c < columns; c += STEP) y[row * columns + c] = expf(from[c] - most) / sum;
}
"""
)
LAYER_NORM = (
    BLOCK
    + """
__global__ void layer_norm(const float* x, float* y, int rows, int columns) {
    long row = ROW;
    if (row >= rows) return;
    const float* from = x + row * columns;
    float sum = 0, squares = 0;
    for (int c = FROM; c < columns; c += STEP) sum += from[c];
    float mean = JOIN(sum, Add()) / columns;
    for (int c = FROM; c < columns; c += STEP) squares += (from[c] - mean) * (from[c] - mean);
    float scale = rsqrtf(JOIN(squares, Add()) / columns + 1e-5f);
    for (int c = FROM; c < columns; c += STEP) y[row * columns + c] = (from[c] - mean) * scale;
}
"""
)
ROW_SUM = (
    BLOCK
    + """
__global__ void row_sum(const float* x, float* y, int rows, int columns) {
    long row = ROW;
    if (row >= rows) return;
    double sum = 0;
    for (int c = FROM; c < columns; c += STEP) sum += x[row * columns + c];
    sum = JOIN(sum, Add());
    if (FROM == 0) y[row] = sum;
}
"""
)
BY_THREAD = {"ROW": "blockIdx.x * long(blockDim.x) + threadIdx.x", "FROM": "0", "STEP": "1", "JOIN(": "keep("}
BY_BLOCK = {"ROW": "blockIdx.x", "FROM": "threadIdx.x", "STEP": "blockDim.x", "JOIN(": "reduce("}
KEEP = "template <typename Join> __device__ float keep(float value, Join) { return value; }\n"


def fill(kernel: str, words: Mapping[str, str]) -> str:
    for word, text in words.items():
        kernel = kernel.replace(word, text)
    return kernel


def by_rows(kernel: str, name: str) -> tuple[str, str, str]:
    """(a row per thread, a row per block of 256, a row per block of 32)."""
    launch = f"{name}<<<%s, %s, 0, stream>>>(x, y, rows, columns);"
    return (
        KEEP + fill(kernel, BY_THREAD) + RUN % (launch % ("(rows + 127) / 128", "128")),
        fill(kernel, BY_BLOCK) + RUN % (launch % ("rows", "256")),
        fill(kernel, BY_BLOCK) + RUN % (launch % ("rows", "32")),
    )


def softmax() -> Sequence[str]:
    naive, block, warp = by_rows(SOFTMAX, "softmax")
    kept = """
__global__ void softmax(const float* x, float* y, int columns) {
    float4 kept[8];
    load<8>(x, blockIdx.x, columns, kept);
    float most = -INFINITY, sum = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) most = fmaxf(most, fmaxf(fmaxf(kept[i].x, kept[i].y), fmaxf(kept[i].z, kept[i].w)));
    most = reduce(most, Max());
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        kept[i] = make_float4(__expf(kept[i].x - most), __expf(kept[i].y - most), __expf(kept[i].z - most),
                              __expf(kept[i].w - most));
        sum += kept[i].x + kept[i].y + kept[i].z + kept[i].w;
    }
    float scale = 1 / reduce(sum, Add());
    float4* to = reinterpret_cast<float4*>(y + long(blockIdx.x) * columns);
    #pragma unroll
    for (int i = 0; i < 8; i++)
        to[threadIdx.x + i * 256] =
            make_float4(kept[i].x * scale, kept[i].y * scale, kept[i].z * scale, kept[i].w * scale);
}
"""
    best = BLOCK + ROW_IN_REGISTERS + kept + RUN % "softmax<<<rows, 256, 0, stream>>>(x, y, columns);"
    return naive, block, warp, best


def layer_norm() -> Sequence[str]:
    naive, block, warp = by_rows(LAYER_NORM, "layer_norm")
    kept = """
__global__ void layer_norm(const float* x, float* y, int columns) {
    float4 kept[8];
    load<8>(x, blockIdx.x, columns, kept);
    float sum = 0, squares = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) sum += kept[i].x + kept[i].y + kept[i].z + kept[i].w;
    float mean = reduce(sum, Add()) / columns;
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        kept[i] = make_float4(kept[i].x - mean, kept[i].y - mean, kept[i].z - mean, kept[i].w - mean);
        squares += kept[i].x * kept[i].x + kept[i].y * kept[i].y + kept[i].z * kept[i].z + kept[i].w * kept[i].w;
    }
    float scale = rsqrtf(reduce(squares, Add()) / columns + 1e-5f);
    float4* to = reinterpret_cast<float4*>(y + long(blockIdx.x) * columns);
    #pragma unroll
    for (int i = 0; i < 8; i++)
        to[threadIdx.x + i * 256] =
            make_float4(kept[i].x * scale, kept[i].y * scale, kept[i].z * scale, kept[i].w * scale);
}
"""
    best = BLOCK + ROW_IN_REGISTERS + kept + RUN % "layer_norm<<<rows, 256, 0, stream>>>(x, y, columns);"
    return naive, block, warp, best


def row_sum() -> Sequence[str]:
    naive, block, warp = by_rows(ROW_SUM, "row_sum")
    kept = """
__global__ void row_sum(const float* x, float* y, int columns) {
    float4 kept[8];
    load<8>(x, blockIdx.x, columns, kept);
    float sum = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) sum += kept[i].x + kept[i].y + kept[i].z + kept[i].w;
    sum = reduce(sum, Add());
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""
    best = BLOCK + ROW_IN_REGISTERS + kept + RUN % "row_sum<<<rows, 256, 0, stream>>>(x, y, columns);"
    return naive, block, warp, best


def column_sum() -> Sequence[str]:
    """Threads side by side in a row sum a part of the rows; parts join by atomic additions."""
    kernel = """
__global__ void column_sum(const float* x, float* y, int rows, int columns, int height) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    long from = long(blockIdx.y) * height, to = min(long(rows), from + height);
    for (long r = from; r < to; r++) sum += x[r * columns + c];
    if (height == rows) y[c] = sum;
    else atomicAdd(y + c, float(sum));
}
"""
    across = """
__global__ void column_sum(const float* x, float* y, int rows, int columns) {
    float sum = 0;
    for (int r = threadIdx.x; r < rows; r += blockDim.x) sum += x[long(r) * columns + blockIdx.x];
    sum = reduce(sum, Add());
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""
    parts = (
        "cudaMemsetAsync(y, 0, columns * 4, stream); "
        "column_sum<<<dim3(columns / 256, {0}), 256, 0, stream>>>(x, y, rows, columns, rows / {0});"
    )
    return (
        BLOCK + across + RUN % "column_sum<<<columns, 256, 0, stream>>>(x, y, rows, columns);",
        kernel + RUN % parts.format(4),
        kernel + RUN % "column_sum<<<columns / 256, 256, 0, stream>>>(x, y, rows, columns, rows);",
        kernel + RUN % parts.format(64),
    )


def transpose() -> Sequence[str]:
    direct = """
__global__ void transpose(const float* x, float* y, int rows, int columns) {
    long c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    y[c * rows + r] = x[r * columns + c];
}
"""
    tiled = """
__global__ void transpose(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[32][32 + PAD];
    long c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += HEIGHT) tile[threadIdx.y + i][threadIdx.x] = x[(r + i) * columns + c];
    __syncthreads();
    c = blockIdx.x * 32 + threadIdx.y, r = blockIdx.y * 32 + threadIdx.x;
    for (int i = 0; i < 32; i += HEIGHT) y[(c + i) * rows + r] = tile[threadIdx.x][threadIdx.y + i];
}
"""
    launch = "transpose<<<dim3(columns / {0}, rows / {1}), dim3({0}, {2}), 0, stream>>>(x, y, rows, columns);"
    return (
        direct + RUN % launch.format(256, 1, 1),
        fill(tiled, {"PAD": "0", "HEIGHT": "1"}) + RUN % launch.format(32, 32, 1),
        direct + RUN % launch.format(32, 8, 8),
        fill(tiled, {"PAD": "1", "HEIGHT": "8"}) + RUN % launch.format(32, 32, 8),
    )


def gelu_chain() -> Sequence[str]:
    """gelu(x) * x + 1 in three kernels, two, one with its own work for each element, one that moves four at a time."""
    kernel = """
__device__ float gelu(float a) { return 0.5f * a * (1 + erff(a * 0.70710678f)); }
__global__ void STEP_NAME(const float* x, float* y, long size) {
    long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
    if (i < size) y[i] = WORK;
}
"""

    def step(name: str, work: str) -> str:
        text = fill(kernel, {"STEP_NAME": name, "WORK": work})
        return text if name == "first" else text.split("\n", 2)[2]

    def launch(*names: str) -> str:
        calls = [f"{name}<<<(size + 255) / 256, 256, 0, stream>>>(x, y, size);" for name in names]
        return RUN % ("long size = long(rows) * columns; " + " ".join(calls))

    by_four = """
__device__ float gelu(float a) { return 0.5f * a * (1 + erff(a * 0.70710678f)); }
__device__ float chain(float a) { return gelu(a) * a + 1; }
__global__ void chain_of_four(const float4* x, float4* y) {
    long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
    float4 a = x[i];
    y[i] = make_float4(chain(a.x), chain(a.y), chain(a.z), chain(a.w));
}
"""
    four = (
        "chain_of_four<<<long(rows) * columns / 1024, 256, 0, stream>>>"
        "(reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y));"
    )
    return (
        step("first", "gelu(x[i])")
        + step("second", "y[i] * x[i]")
        + step("third", "y[i] + 1")
        + launch("first", "second", "third"),
        step("first", "gelu(x[i])") + step("second", "y[i] * x[i] + 1") + launch("first", "second"),
        step("first", "gelu(x[i])")
        + step("second", "y[i] * x[i]")
        + step("third", "y[i] + 1.0f")
        + launch("first", "second", "third"),
        by_four + RUN % four,
    )


# expression of the reference, shape of the output, programs by turn
PROBLEMS: dict[str, tuple[str, str, Callable[[], Sequence[str]]]] = {
    "softmax_of_rows": ("torch.softmax(x, dim=1)", "{x.size(0), x.size(1)}", softmax),
    "norm_of_rows": ("torch.nn.functional.layer_norm(x, x.shape[1:])", "{x.size(0), x.size(1)}", layer_norm),
    "sum_of_rows": ("x.sum(dim=1)", "{x.size(0)}", row_sum),
    "sum_of_columns": ("x.sum(dim=0)", "{x.size(1)}", column_sum),
    "transpose": ("x.t().contiguous()", "{x.size(1), x.size(0)}", transpose),
    "gelu_chain": ("torch.nn.functional.gelu(x) * x + 1", "{x.size(0), x.size(1)}", gelu_chain),
}
EQUAL = "softmax_of_rows"


def make_equal(problem: str) -> Sequence[str]:
    """One program that leaves room to gain, and copies of it with another unused function."""
    program = PROBLEMS[problem][2]()[1]
    unused = "__device__ float unused{0}(float a) {{ return a * {0}.5f; }}\n"
    return [program, *(unused.format(number) + program for number in range(EQUAL_PROGRAMS))]


def write_material(folder: Path, programs: Mapping[str, Sequence[str]]) -> None:
    for problem, turns in programs.items():
        expression, shape, _ = PROBLEMS[problem]
        reference = folder / "problems" / "steps" / f"{problem}.py"
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(PROBLEM.format(expression=expression, rows=ROWS, columns=COLUMNS))
        for number, kernels in enumerate(turns):
            sample = folder / "recording" / "cuda" / problem / "0"
            answer = (sample / f"turn-{number}" if number else sample) / "completion.md"
            answer.parent.mkdir(parents=True, exist_ok=True)
            answer.write_text(ANSWER.format(kernels=kernels, shape=shape))
    (folder / "recording" / "manifest.json").write_text(json.dumps({"model": "written-by-hand"}))


def search(folder: Path, turns: int, device: str, more: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The record of `harness run --json` for each problem."""
    command = [sys.executable, "-m", "harness", "run", "--provider", "recorded", "--recording", folder / "recording"]
    command += ["--problems-dir", folder / "problems", "--suite", "steps", "--language", "cuda", "--device", device]
    command += ["--turns", turns, "--patience", turns, "--strategy", "optimise", "--run", "order", "--json"]
    command += ["--results-dir", folder / "results", "--generated-dir", folder / "generated", *more]
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return {record["problem"]: record for record in map(json.loads, done.stdout.splitlines())}


def measure_truth(programs: Mapping[str, Sequence[str]], device: Device) -> dict[str, list[float]]:
    """The time of each program in us."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        work = [(problem, number) for problem in programs for number in range(len(programs[problem]))]
        built = pool.map(lambda one: build_alone(programs[one[0]][one[1]], Path(folder) / f"{one[0]}{one[1]}"), work)
        entries = dict(zip(work, built, strict=True))
        return {
            problem: [time_alone(entries[problem, number], device) for number in range(len(programs[problem]))]
            for problem in programs
        }


def build_alone(kernels: str, path: Path) -> Any:
    source = path.with_suffix(".cu")
    source.write_text(kernels + ENTRY)
    library = path.with_suffix(".so")
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    command = [
        f"{find_cuda_home()}/bin/nvcc",
        "-O3",
        f"-arch={arch}",
        "--shared",
        "-Xcompiler",
        "-fPIC",
        "-o",
        library,
        source,
    ]
    subprocess.run([str(word) for word in command], check=True)
    return ctypes.CDLL(str(library)).entry


def time_alone(entry: Any, device: Device) -> float:
    x = torch.randn(ROWS, COLUMNS, device=device.torch_device)
    y = torch.empty_like(x)
    times = []
    for _ in range(REPEATS + 3):
        device.flush_cache()
        torch.cuda.synchronize()
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        marks[0].record(torch.cuda.default_stream())
        entry(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ROWS, COLUMNS)
        marks[1].record(torch.cuda.default_stream())
        torch.cuda.synchronize()
        times.append(marks[0].elapsed_time(marks[1]) * 1e3)
    return statistics.median(times[3:])


def report_steps(record: dict[str, Any], true_us: Sequence[float]) -> bool:
    """Prints a line per turn. Returns whether order and best turn are true."""
    turns = [turn for turn in record["turns"] if turn["speedup"] is not None]
    for turn in turns:
        true = f"{true_us[turn['turn']]:10.1f} us alone"
        print(f"{record['problem']:16} turn {turn['turn']} {true}  {describe_speedup(turn)}")
    wrong = [
        (first["turn"], second["turn"])
        for first, second in combinations(turns, 2)
        if differ(first, second, true_us) and not agree(first, second, true_us)
    ]
    fastest = min(turns, key=lambda turn: true_us[turn["turn"]])["turn"]
    best = record["best"]
    found = true_us[best] <= true_us[fastest] * (1 + DIFFERENT)
    met = not wrong and found and len(turns) == len(record["turns"])
    asked = ", ".join(f"{turn['turn']} {turn['outcome']}" for turn in record["turns"])
    print(
        f"{record['problem']:16} best: turn {best}, fastest alone: {fastest}; {asked} {'' if met else 'MISSED'}",
        flush=True,
    )
    return met


def describe_speedup(turn: dict[str, Any]) -> str:
    over = ""
    if turn["over_rival"] is not None:
        over = f"  {turn['over_rival']:.3f} over turn {turn['rival']}, from {turn['over_rival_low']:.3f}"
    return f"speedup {turn['speedup']:7.3f} [{turn['speedup_low']:.3f}, {turn['speedup_high']:.3f}]{over}"


def differ(first: dict[str, Any], second: dict[str, Any], true_us: Sequence[float]) -> bool:
    times = sorted((true_us[first["turn"]], true_us[second["turn"]]))
    return times[1] > times[0] * (1 + DIFFERENT)


def agree(first: dict[str, Any], second: dict[str, Any], true_us: Sequence[float]) -> bool:
    return bool((true_us[first["turn"]] < true_us[second["turn"]]) == (first["speedup"] > second["speedup"]))


def report_equal(record: dict[str, Any]) -> bool:
    timed = [turn for turn in record["turns"] if turn["speedup"] is not None]
    for turn in timed:
        print(f"turn {turn['turn']:2} parent {turn['parent']} {describe_speedup(turn)}")
    print(f"{len(timed)} of {len(record['turns'])} programs timed; best: turn {record['best']}")
    return record["best"] == 0 and len(timed) == EQUAL_PROGRAMS + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["steps", "equal"])
    parser.add_argument("--device", default="cuda:0", help="of the search; the true times are those of the first one")
    parser.add_argument("--problem", choices=sorted(PROBLEMS), nargs="*", default=list(PROBLEMS), help="of steps")
    parser.add_argument("--folder", type=Path, help="where programs and results stay; a temporary one if none is given")
    options, more = parser.parse_known_args()
    equal = options.what == "equal"
    programs = {EQUAL: make_equal(EQUAL)} if equal else {name: PROBLEMS[name][2]() for name in options.problem}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        write_material(folder, programs)
        records = search(folder, max(map(len, programs.values())), options.device, more)
    if equal:
        met = report_equal(records[EQUAL])
    else:
        true_us = measure_truth(programs, open_device(options.device.split(",")[0]))
        met = False not in [report_steps(records[problem], true_us[problem]) for problem in programs]
    print(f"goal: {'none accepted as better' if equal else 'true order'}: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
