"""Programs of `search_order.py`: for each problem CUDA programs from a naive one to an optimised one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
