# ruff: noqa: E501 - a program, or an expression, to a line
"""Small CUDA programs over torch's C++ API, always the same ones: what both lanes of a build must agree on.

Each stands in a namespace of its own, so that many fit in one source.
"""

from dataclasses import dataclass
from itertools import product

HEADERS = (
    "torch/extension.h", "ATen/cuda/CUDAContext.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAStream.h",
    "c10/cuda/CUDAException.h", "cuda_fp16.h", "cuda_bf16.h", "vector", "cmath",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """`body` is what stands between the includes and the end; `entry` takes one CUDA tensor of floats, 2D."""

    name: str
    body: str

    @property
    def source(self):
        includes = "".join(f"#include <{header}>\n" for header in HEADERS)
        return f"{includes}namespace {self.name} {{\n{self.body}\n}}\n"


UNARY = (
    "fmaxf(v, 0.f)", "expf(v)", "tanhf(v)", "1.f / (1.f + expf(-v))", "v * v", "fabsf(v)", "sqrtf(fabsf(v))", "rsqrtf(v * v + 1.f)",
    "erff(v)", "log1pf(fabsf(v))", "sinf(v) + cosf(v)", "fminf(fmaxf(v, -1.f), 1.f)", "v > 0 ? v : 0.01f * v",
    "powf(fabsf(v), 1.5f)", "floorf(v)", "__expf(v)", "max(v, 0.f)", "abs(v)", "std::exp(v)", "std::max(v, 0.5f)", "fmaf(v, v, 1.f)",
)  # fmt: skip
ATEN = (
    "x.sum()", "x.mean(1)", "x.t().contiguous()", "x.view({-1})", "x.reshape({x.size(1), x.size(0)})", "x.relu()", "at::relu(x)",
    "torch::relu(x)", "x.softmax(-1)", "torch::softmax(x, 1)", "x + 1", "x * x", "2.0 - x", "x / 3", "-x", "x > 0", "x.to(torch::kFloat64)",
    "x.to(at::kHalf)", "x.clone()", "x.detach()", "x.unsqueeze(0)", "x.permute({1, 0})", "x.transpose(0, 1)", "x.matmul(x.t())",
    "torch::mm(x, x.t())", "at::matmul(x, x.t())", "x.exp().log()", "x.clamp(-1, 1)", "x.clamp_min(0.0)", "x.abs().sqrt()",
    "x.pow(2)", "x.sum(-1, true)", "x.sum({0, 1})", "std::get<0>(x.max(1))", "x.argmax(1)", "torch::cat({x, x}, 1)", "torch::stack({x, x})",
    "x.narrow(0, 0, 1)", "x.slice(0, 0, 1)", "x.select(0, 0)", "x[0]", "x.index_select(0, torch::zeros({1}, x.options().dtype(torch::kLong)))",
    "torch::zeros({4, 4}, x.options())", "torch::ones_like(x)", "torch::full({2, 3}, 1.5, x.options())", "torch::arange(10, x.options())",
    "torch::empty({x.size(0)}, torch::dtype(torch::kFloat32).device(torch::kCUDA)).fill_(1)", "torch::zeros_like(x, x.options().dtype(torch::kInt))",
    "at::empty_like(x).copy_(x)", "x.new_zeros({2, 2})", "x.expand({2, x.size(0), x.size(1)})", "x.flatten()", "x.squeeze()",
    "torch::linear(x, x)", "x.var(1)", "x.norm()", "x.cumsum(0)", "x.masked_fill(x > 0, 0.0)", "torch::where(x > 0, x, x * 2)",
    "x.sign()", "x.round()", "torch::tanh(x)", "torch::sigmoid(x)", "x.add(x, 2)", "x.add_(1)", "x.mul(2.5).sub(1)", "x.contiguous()",
    "x.div(2)", "at::add(x, x)", "torch::max(x)", "torch::min(x)", "x.log_softmax(1)", "x.addmm(x, x.t().matmul(x))",
    "torch::from_blob(x.data_ptr(), {x.size(0), x.size(1)}, x.options()).clone()",
)  # fmt: skip
CHECKS = (
    'TORCH_CHECK(x.is_cuda(), "x must be CUDA")', "TORCH_CHECK(x.dim() == 2)",
    'TORCH_CHECK(x.scalar_type() == torch::kFloat32, "dtype is ", x.scalar_type())', 'AT_ASSERTM(x.is_contiguous(), "layout")',
    'TORCH_CHECK(x.dtype() == torch::kFloat32, "float, not ", x.dtype())', 'TORCH_CHECK_EQ(x.dim(), 2)',
    'if (x.numel() > 1000000000) { AT_ERROR("too large: ", x.numel()); }', 'TORCH_INTERNAL_ASSERT(x.defined())',
    'TORCH_CHECK_VALUE(x.size(0) > 0, "empty")', 'TORCH_CHECK_INDEX(x.size(1) < 99999, "wide")',
    'if (x.numel() == 77) { TORCH_WARN("seventy-seven"); }', 'TORCH_CHECK(x.device().is_cuda(), "on ", x.device())',
    'TORCH_CHECK(x.sizes() == at::IntArrayRef({x.size(0), x.size(1)}), "sizes ", x.sizes())',
    'if (x.device().type() != torch::kCUDA) { throw std::runtime_error("device"); }',
)  # fmt: skip
LAUNCHES = (
    "k<<<(n + 255) / 256, 256>>>", "k<<<dim3((n + 127) / 128), dim3(128)>>>", "k<<<blocks, threads, 0>>>",
    "k<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>", "k<<<blocks, threads, 0, c10::cuda::getCurrentCUDAStream().stream()>>>",
    "k<<<blocks, threads, 64 * sizeof(float), at::cuda::getCurrentCUDAStream(x.device().index())>>>",
)  # fmt: skip
AFTER = (
    "",
    "C10_CUDA_KERNEL_LAUNCH_CHECK();",
    "AT_CUDA_CHECK(cudaGetLastError());",
    "C10_CUDA_CHECK(cudaGetLastError());",
)
GUARDS = (
    "", "const at::cuda::OptionalCUDAGuard guard(x.device());", "const c10::cuda::CUDAGuard guard(x.device());",
    "c10::DeviceGuard guard(x.device());", "at::cuda::CUDAGuard guard(x.get_device());", "torch::NoGradGuard no_grad;",
)  # fmt: skip
DISPATCHES = (
    "AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), {n}, {b})", "AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), {n}, {b})",
    "AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), {n}, {b})",
    "AT_DISPATCH_ALL_TYPES(x.scalar_type(), {n}, {b})", "AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), {n}, {b})",
    "AT_DISPATCH_SWITCH(x.scalar_type(), {n}, AT_DISPATCH_CASE(at::kFloat, {b}))",
    "AT_DISPATCH_FLOATING_TYPES_AND(torch::kBFloat16, x.scalar_type(), {n}, {b})", "AT_DISPATCH_ALL_TYPES_AND(at::kHalf, x.scalar_type(), {n}, {b})",
)  # fmt: skip
GENERIC_KERNELS = (
    "y[i] = x[i];", "y[i] = x[i] + x[i];", "y[i] = x[i] * static_cast<T>(2);", "y[i] = static_cast<T>(static_cast<float>(x[i]) * 0.5f);",
    "float v = x[i]; y[i] = v > 0 ? x[i] : T(0);",
)  # fmt: skip


def list_programs():
    """Every program, in a fixed order."""
    makers = (_elementwise, _aten, _checks, _launches, _dispatches, _accessors, _singles)
    bodies = [body for maker in makers for body in maker()]
    return [Program(name=f"p{number}", body=body) for number, body in enumerate(bodies)]


def _wrap(kernel, host, before="", after=""):
    return (
        f"{kernel}\ntorch::Tensor run(torch::Tensor x) {{\n  {before}\n  auto y = torch::empty_like(x);\n"
        f"  const int n = x.numel();\n  const int threads = 128;\n  const int blocks = (n + threads - 1) / threads;\n"
        f"  {host}\n  {after}\n  return y;\n}}"
    )


def _float_kernel(expression):
    return (
        "__global__ void k(const float* x, float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  if (i < n) {{ float v = x[i]; y[i] = {expression}; }}\n}}"
    )


FLOATS = "(x.data_ptr<float>(), y.data_ptr<float>(), n);"


def _elementwise():
    yield from (_wrap(_float_kernel(expression), f"k<<<blocks, threads>>>{FLOATS}") for expression in UNARY)


def _aten():
    kernel = _float_kernel("v + 1.f")
    yield from (_wrap(kernel, f"k<<<blocks, threads>>>{FLOATS}", after=f"auto z = {call}; (void)z;") for call in ATEN)


def _checks():
    kernel = _float_kernel("v * 2.f")
    yield from (_wrap(kernel, f"k<<<blocks, threads>>>{FLOATS}", before=check + ";") for check in CHECKS)


def _launches():
    kernel = _float_kernel("v - 1.f")
    for launch, after, guard in product(LAUNCHES, AFTER, GUARDS[:4]):
        yield _wrap(kernel, f"{launch}{FLOATS}", before=guard, after=after)
    yield from (_wrap(kernel, f"k<<<blocks, threads>>>{FLOATS}", before=guard) for guard in GUARDS[4:])


def _dispatches():
    for dispatch, statement in product(DISPATCHES, GENERIC_KERNELS):
        kernel = (
            "template <typename T> __global__ void k(const T* __restrict__ x, T* __restrict__ y, int64_t n) {\n"
            f"  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) {{ {statement} }}\n}}"
        )
        launch = "[&] { k<scalar_t><<<blocks, threads>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n); }"
        yield _wrap(kernel, dispatch.format(n='"run"', b=launch) + ";")


def _accessors():
    for traits, width, form in product(("", ", torch::RestrictPtrTraits"), (32, 64), range(4)):
        index = "int" if width == 32 else "int64_t"
        kind = f"torch::PackedTensorAccessor{width}<float, 2{traits}>"
        statement = (
            "y[r][c] = x[r][c] + 1;",
            "y[r][c] = x[c % x.size(0)][c];",
            "auto row = x[r]; y[r][c] = row[c] * row[0];",
            "y[r][c] = x.size(1) * x.stride(0) + x[r][c];",
        )[form]
        kernel = (
            f"__global__ void k(const {kind} x, {kind} y) {{\n  const {index} r = blockIdx.x, c = threadIdx.x;\n"
            f"  if (r < x.size(0) && c < x.size(1)) {{ {statement} }}\n}}"
        )
        call = f"packed_accessor{width}<float, 2{traits}>()"
        yield _wrap(kernel, f"k<<<x.size(0), x.size(1)>>>(x.{call}, y.{call});")


def _singles():
    yield from SINGLES


SINGLES = (
    # shared memory and a barrier
    _wrap("__global__ void k(const float* x, float* y, int n) { __shared__ float t[128]; int i = blockIdx.x * 128 + threadIdx.x; "
          "t[threadIdx.x] = i < n ? x[i] : 0.f; __syncthreads(); for (int s = 64; s > 0; s >>= 1) { if (threadIdx.x < s) "
          "t[threadIdx.x] += t[threadIdx.x + s]; __syncthreads(); } if (i < n) y[i] = t[0]; }", f"k<<<blocks, threads>>>{FLOATS}"),
    # dynamic shared memory
    _wrap("__global__ void k(const float* x, float* y, int n) { extern __shared__ float t[]; int i = blockIdx.x * blockDim.x + threadIdx.x; "
          "t[threadIdx.x] = i < n ? x[i] : 0.f; __syncthreads(); if (i < n) y[i] = t[blockDim.x - 1 - threadIdx.x]; }",
          f"k<<<blocks, threads, threads * sizeof(float)>>>{FLOATS}"),
    # warp shuffles
    _wrap("__inline__ __device__ float warp_sum(float v) { for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o); return v; }\n"
          "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; float v = i < n ? x[i] : 0.f; "
          "v = warp_sum(v); if (i < n) y[i] = v; }", f"k<<<blocks, threads>>>{FLOATS}"),
    # a template over an integer, a functor and launch bounds
    _wrap("struct Scale { float by; __device__ __forceinline__ float operator()(float v) const { return v * by; } };\n"
          "template <int ITEMS, typename F> __global__ __launch_bounds__(256) void k(const float* x, float* y, int n, F f) { "
          "for (int j = 0; j < ITEMS; ++j) { int i = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS + j; if (i < n) y[i] = f(x[i]); } }",
          "k<4><<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, Scale{2.f});"),
    # constant memory and a device variable
    _wrap("__constant__ float table[4] = {1.f, 2.f, 3.f, 4.f};\n__device__ int counter;\n__global__ void k(const float* x, float* y, int n) { "
          "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { y[i] = x[i] * table[i % 4]; atomicAdd(&counter, 1); } }", f"k<<<blocks, threads>>>{FLOATS}"),
    # vector loads
    _wrap("__global__ void k(const float4* x, float4* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float4 v = x[i]; "
          "y[i] = make_float4(v.x + 1, v.y + 1, v.z + 1, v.w + 1); } }",
          "k<<<blocks, threads>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), n / 4);"),
    # half by hand
    _wrap("__global__ void k(const __half* x, __half* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) "
          "y[i] = __float2half(__half2float(x[i]) * 2.f); }",
          "auto h = x.to(torch::kHalf); auto z = torch::empty_like(h); k<<<blocks, threads>>>(reinterpret_cast<const __half*>(h.data_ptr<at::Half>()), "
          "reinterpret_cast<__half*>(z.data_ptr<at::Half>()), n); y.copy_(z);"),
    # bfloat16 by hand
    _wrap("__global__ void k(const __nv_bfloat16* x, __nv_bfloat16* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) "
          "y[i] = __float2bfloat16(__bfloat162float(x[i]) + 1.f); }",
          "auto h = x.to(torch::kBFloat16); auto z = torch::empty_like(h); k<<<blocks, threads>>>(reinterpret_cast<const __nv_bfloat16*>("
          "h.data_ptr<at::BFloat16>()), reinterpret_cast<__nv_bfloat16*>(z.data_ptr<at::BFloat16>()), n); y.copy_(z);"),
    # several kernels, a static one and one in an unnamed namespace
    _wrap("static __global__ void first(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n"
          "namespace { __global__ void second(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += 1.f; } }",
          f"first<<<blocks, threads>>>{FLOATS} second<<<blocks, threads>>>(y.data_ptr<float>(), n);"),
    # macros of its own, a typedef, an enum, host helpers
    _wrap("#define TILE 16\n#define CEIL(a, b) (((a) + (b) - 1) / (b))\nusing index_t = int;\nenum class Mode { Add, Mul };\n"
          "inline int divide(int a, int b) { return CEIL(a, b); }\n__host__ __device__ inline float twice(float v) { return 2 * v; }\n"
          "template <Mode M> __global__ void k(const float* x, float* y, index_t rows, index_t columns) { index_t r = blockIdx.y * TILE + threadIdx.y, "
          "c = blockIdx.x * TILE + threadIdx.x; if (r < rows && c < columns) { float v = x[r * columns + c]; y[r * columns + c] = M == Mode::Add ? v + 1 : twice(v); } }",
          "dim3 block(TILE, TILE); dim3 grid(divide(x.size(1), TILE), divide(x.size(0), TILE)); "
          "k<Mode::Mul><<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));"),
    # types found by the host code alone: the index type of a generic kernel follows from torch's return types
    _wrap("template <typename I> __global__ void k(const float* x, float* y, I n) { I i = blockIdx.x * (I)blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }",
          "k<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel()); k<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(0));"
          " auto rows = x.sizes()[0]; k<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows);"),
    # device properties and occupancy
    _wrap(_float_kernel("v + 3.f"), f"auto* p = at::cuda::getCurrentDeviceProperties(); int m = p->multiProcessorCount; k<<<m * 32, threads>>>{FLOATS}"),
    # const pointers, mutable pointers, options in a variable, vectors of sizes
    _wrap(_float_kernel("v + 4.f"), "auto options = torch::TensorOptions().dtype(x.dtype()).device(x.device()).requires_grad(false); "
          "std::vector<int64_t> shape = {x.size(0), x.size(1)}; auto z = torch::zeros(shape, options); "
          "k<<<blocks, threads>>>(x.const_data_ptr<float>(), z.mutable_data_ptr<float>(), n); y.copy_(z);"),
)  # fmt: skip
