# ruff: noqa: E501 - a program, or an expression, to a line
"""Small CUDA programs over torch's C++ API, always the same ones: what both strategies of a build must agree on.

Each stands in a namespace of its own, so that many fit in one source.
"""

from dataclasses import dataclass, field
from itertools import product

HEADERS = (
    "torch/extension.h", "ATen/cuda/CUDAContext.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAStream.h",
    "c10/cuda/CUDAException.h", "cuda_fp16.h", "cuda_bf16.h", "vector", "cmath",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """`body` is what stands between the includes and the end: its `run` takes one CUDA tensor of floats, 64 by 64."""

    name: str
    body: str
    headers: tuple = field(default=HEADERS)

    @property
    def source(self):
        return write_source([self])


def write_source(programs):
    """One source of all these programs, each in its namespace."""
    headers = dict.fromkeys(header for program in programs for header in program.headers)
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return includes + "".join(f"namespace {program.name} {{\n{program.body}\n}}\n" for program in programs)


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
    "x.pow(2)", "x.sum(-1, true)", "x.sum(at::IntArrayRef({0, 1}))", "std::get<0>(x.max(1))", "x.argmax(1)", "torch::cat({x, x}, 1)", "torch::stack({x, x})",
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
    makers = (
        _elementwise, _aten, _checks, _launches, _dispatches, _accessors, _singles, _halves, _templates, _several, _options,
        _streams,
    )  # fmt: skip
    bodies = [(body, HEADERS) for maker in makers for body in maker()]
    bodies += [(body, (*HEADERS, "cub/cub.cuh")) for body in _cub()]
    bodies += [(body, ("torch/extension.h", header)) for header, body in WITH_CUDA_HEADERS]
    return [Program(name=f"p{number}", body=body, headers=headers) for number, (body, headers) in enumerate(bodies)]


def wrap_kernel(kernel, host, before="", after=""):
    return (
        f"{kernel}\ntorch::Tensor run(torch::Tensor x) {{\n  {before}\n  auto y = torch::empty_like(x);\n"
        f"  const int n = x.numel();\n  const int threads = 128;\n  const int blocks = (n + threads - 1) / threads;\n"
        f"  {host}\n  {after}\n  return y;\n}}"
    )


def write_float_kernel(expression):
    return (
        "__global__ void k(const float* x, float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  if (i < n) {{ float v = x[i]; y[i] = {expression}; }}\n}}"
    )


FLOATS = "(x.data_ptr<float>(), y.data_ptr<float>(), n);"


def _elementwise():
    yield from (wrap_kernel(write_float_kernel(expression), f"k<<<blocks, threads>>>{FLOATS}") for expression in UNARY)


def _aten():
    kernel = write_float_kernel("v + 1.f")
    yield from (
        wrap_kernel(kernel, f"k<<<blocks, threads>>>{FLOATS}", after=f"at::Tensor z = {call}; if (n > 0) return z;")
        for call in ATEN
    )


def _checks():
    kernel = write_float_kernel("v * 2.f")
    yield from (wrap_kernel(kernel, f"k<<<blocks, threads>>>{FLOATS}", before=check + ";") for check in CHECKS)


def _launches():
    kernel = write_float_kernel("v - 1.f")
    for (first, launch), (second, after) in product(enumerate(LAUNCHES), enumerate(AFTER)):
        guard = GUARDS[(first + second) % 4]  # each pair of two of the three at least once
        yield wrap_kernel(kernel, f"{launch}{FLOATS}", before=guard, after=after)
    yield from (wrap_kernel(kernel, f"k<<<blocks, threads>>>{FLOATS}", before=guard) for guard in GUARDS[4:])


def _dispatches():
    for number, dispatch in enumerate(DISPATCHES):  # each makes its kernel for up to ten types
        statement = GENERIC_KERNELS[number % len(GENERIC_KERNELS)]
        kernel = (
            "template <typename T> __global__ void k(const T* __restrict__ x, T* __restrict__ y, int64_t n) {\n"
            f"  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) {{ {statement} }}\n}}"
        )
        launch = "[&] { k<scalar_t><<<blocks, threads>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n); }"
        yield wrap_kernel(kernel, dispatch.format(n='"run"', b=launch) + ";")


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
        yield wrap_kernel(kernel, f"k<<<x.size(0), x.size(1)>>>(x.{call}, y.{call});")


def _singles():
    yield from SINGLES


def _halves():
    """Arithmetic of torch's own small types in kernels, and of CUDA's on torch's storage."""
    for kind, constant in (
        ("at::Half", "at::kHalf"),
        ("at::BFloat16", "at::kBFloat16"),
        ("c10::Half", "torch::kFloat16"),
    ):
        for statement in (
            "y[i] = x[i] * x[i];",
            "y[i] = static_cast<float>(x[i]) + 1.f;",
            "y[i] = x[i] < T(0) ? T(0) : x[i];",
        ):
            kernel = f"using T = {kind};\n__global__ void k(const T* x, T* y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {statement} }} }}"
            yield wrap_kernel(
                kernel,
                f"auto h = x.to({constant}); auto z = torch::empty_like(h); k<<<blocks, threads>>>(h.data_ptr<T>(), z.data_ptr<T>(), n);",
                after="return z;",
            )
    for kind, pair, constant, convert in (
        ("__half", "__half2", "Half", "__float2half"),
        ("__nv_bfloat16", "__nv_bfloat162", "BFloat16", "__float2bfloat16"),
    ):
        kernel = f"__global__ void k(const {pair}* x, {pair}* y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = __hadd2(x[i], x[i]); }}"
        pointers = f"reinterpret_cast<const {pair}*>(h.data_ptr()), reinterpret_cast<{pair}*>(z.data_ptr())"
        yield wrap_kernel(
            kernel,
            f"auto h = x.to(torch::k{constant}); auto z = torch::empty_like(h); k<<<blocks, threads>>>({pointers}, n / 2);",
            after="return z;",
        )
        kernel = f"__global__ void k({kind}* y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = {convert}(i * 0.25f); }}"
        yield wrap_kernel(
            kernel,
            f"auto z = torch::empty({{n}}, x.options().dtype(at::k{constant})); k<<<blocks, threads>>>(({kind}*)z.data_ptr<at::{constant}>(), n);",
            after="return z;",
        )


def _templates():
    """What a launch's template arguments are found from: types, numbers, functors, defaults, packs, specialisations."""
    body = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = "
    signature = "(const float* x, float* y, int n)"
    call = f"<<<blocks, threads>>>{FLOATS}"
    yield wrap_kernel(f"template <int N = 3> __global__ void k{signature} {{ {body}x[i] * N; }}", f"k<>{call}")
    yield wrap_kernel(
        f"template <int... N> __global__ void k{signature} {{ {body}x[i] * (N + ...); }}", f"k<1, 2, 3>{call}"
    )
    yield wrap_kernel(
        f"template <typename A, typename B> __global__ void k{signature} {{ {body}(A)x[i] + (B)x[i]; }}",
        f"k<double, int>{call}",
    )
    yield wrap_kernel(
        f"template <bool F> __global__ void k{signature} {{ if constexpr (F) {{ {body}x[i]; }} else {{ {body}-x[i]; }} }}",
        f"if (x.dim() == 2) k<true>{call} else k<false>{call}",
    )
    yield wrap_kernel(
        f"template <typename T> struct One {{ static constexpr float v = 1; }}; template <> struct One<int> {{ static constexpr float v = 2; }};\n"
        f"template <typename T> __global__ void k{signature} {{ {body}x[i] + One<T>::v; }}",
        f"k<int>{call} k<char>{call}",
    )
    yield wrap_kernel(
        f"template <template <typename> class C> __global__ void k{signature} {{ {body}C<float>()(x[i]); }}\ntemplate <typename T> struct Neg {{ __device__ T operator()(T v) const {{ return -v; }} }};",
        f"k<Neg>{call}",
    )
    yield wrap_kernel(
        f"constexpr int cube(int v) {{ return v * v * v; }}\ntemplate <int N> __global__ void k{signature} {{ {body}x[i] * N; }}",
        f"k<cube(2)>{call}",
    )
    yield wrap_kernel(
        f"enum Mode : int {{ A, B }};\ntemplate <Mode M> __global__ void k{signature} {{ {body}M == B ? x[i] : 0.f; }}\ntemplate <Mode M> void go(const at::Tensor& x, at::Tensor y, int n) {{ k<M><<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n); }}",
        "go<B>(x, y, n);",
    )
    yield wrap_kernel(
        "template <typename T, typename F> __global__ void k(T* y, int n, F f) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = f(i); }\nstruct Half { __host__ __device__ float operator()(int i) const { return i * 0.5f; } };",
        "k<<<blocks, threads>>>(y.data_ptr<float>(), n, Half());",
    )
    yield wrap_kernel(
        "template <typename T> __global__ void k(at::PackedTensorAccessor32<T, 2> y, T v) { y[blockIdx.x][threadIdx.x] = v; }",
        'AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "k", [&] { k<scalar_t><<<x.size(0), x.size(1)>>>(y.packed_accessor32<scalar_t, 2>(), scalar_t(7)); });',
    )
    yield wrap_kernel(
        "template <typename T> struct Args { const T* x; T* y; int n; };\ntemplate <typename T> __global__ void k(Args<T> a) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < a.n) a.y[i] = a.x[i] + 5; }",
        "Args<float> a{x.data_ptr<float>(), y.data_ptr<float>(), n}; k<<<blocks, threads>>>(a);",
    )
    yield wrap_kernel(
        f"namespace inner {{ template <unsigned W> __global__ void k{signature} {{ {body}x[i] / W; }} }}",
        f"inner::k<4u>{call}",
    )


def _several():
    """Several kernels: one after another, of one name, one that calls a device function of another, and with a result between."""
    kernel = "__global__ void {name}(const float* x, float* y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = {body}; }}\n"
    for count in (2, 3, 5):
        kernels = "".join(kernel.format(name=f"k{number}", body=f"x[i] + {number}.f") for number in range(count))
        calls = " ".join(
            f"k{number}<<<blocks, threads>>>({'x' if number == 0 else 'y'}.data_ptr<float>(), y.data_ptr<float>(), n);"
            for number in range(count)
        )
        yield wrap_kernel(kernels, calls)
    overloads = (
        kernel.format(name="k", body="x[i]")
        + "__global__ void k(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] *= 3.f; }\n"
    )
    yield wrap_kernel(overloads, f"k<<<blocks, threads>>>{FLOATS} k<<<blocks, threads>>>(y.data_ptr<float>(), n);")
    yield wrap_kernel(
        "__device__ __noinline__ float shared_step(float v) { return v * 0.5f + 1.f; }\n"
        + kernel.format(name="a", body="shared_step(x[i])")
        + kernel.format(name="b", body="shared_step(shared_step(x[i]))"),
        f"a<<<blocks, threads>>>{FLOATS} b<<<blocks, threads>>>(y.data_ptr<float>(), y.data_ptr<float>(), n);",
    )
    yield wrap_kernel(
        kernel.format(name="a", body="x[i] * 2"),
        f"a<<<blocks, threads>>>{FLOATS} auto s = y.sum(0, true).expand_as(y).contiguous(); a<<<blocks, threads>>>(s.data_ptr<float>(), y.data_ptr<float>(), n);",
    )
    yield wrap_kernel(
        kernel.format(name="a", body="x[i] * 2"),
        f"void (*f)(const float*, float*, int) = a; f<<<blocks, threads>>>{FLOATS}",
    )
    yield wrap_kernel(
        kernel.format(name="a", body="x[i] * 6"),
        "const float* p = x.data_ptr<float>(); float* q = y.data_ptr<float>(); int m = n; void* args[] = {&p, &q, &m}; cudaLaunchKernel((const void*)a, dim3(blocks), dim3(threads), args, 0, nullptr);",
    )


def _options():
    """Tensors made in many ways, and given back."""
    kernel = write_float_kernel("v * 4.f")
    for made in (
        "torch::TensorOptions options(torch::kFloat64); auto z = torch::ones({3}, options.device(x.device()));",
        "auto z = torch::zeros({2, 2}, torch::TensorOptions().dtype(torch::kInt32).device(torch::kCUDA, 0));",
        "auto z = torch::full({4}, 2, torch::dtype(torch::kLong).device(x.device()));",
        "auto z = torch::empty({0}, x.options());",
        "at::Tensor z = at::zeros(x.sizes(), x.options().memory_format(at::MemoryFormat::Contiguous));",
        "auto z = torch::ones({2}, at::device(at::kCUDA).dtype(at::kBool));",
        "auto z = torch::linspace(0, 1, 5, x.options());",
        "auto z = x.new_empty({4, 4}).zero_();",
        "c10::IntArrayRef s = x.sizes(); std::vector<int64_t> v(s.begin(), s.end()); v.push_back(1); auto z = x.reshape(v);",
        "c10::optional<at::Tensor> maybe = x; auto z = maybe.has_value() ? *maybe + 1 : x;",
        "auto z = torch::tensor({1.5, 2.5}, x.options().dtype(torch::kDouble));",
        "std::optional<at::Tensor> none; TORCH_CHECK(!none.has_value()); auto z = x.to(x.device(), torch::kInt16, false, true);",
    ):
        yield wrap_kernel(kernel, f"k<<<blocks, threads>>>{FLOATS} {made}", after="if (n > 0) return z;")  # fmt: skip


def _streams():
    """Work on other streams, and events, waited for before the result is used."""
    kernel = write_float_kernel("v * 8.f")
    for begin, stream, end in (
        ("cudaStream_t s; cudaStreamCreate(&s);", "s", "cudaStreamSynchronize(s); cudaStreamDestroy(s);"),
        ("auto s = at::cuda::getStreamFromPool(); cudaDeviceSynchronize();", "s", "s.synchronize();"),
        (
            "auto s = c10::cuda::getStreamFromPool(true, x.device().index()); cudaDeviceSynchronize();",
            "s.stream()",
            "cudaStreamSynchronize(s);",
        ),
        (
            "cudaDeviceSynchronize(); auto s = at::cuda::getDefaultCUDAStream();",
            "s",
            "C10_CUDA_CHECK(cudaStreamSynchronize(s.stream()));",
        ),
        (
            "auto s = at::cuda::getCurrentCUDAStream(); cudaEvent_t e; cudaEventCreate(&e);",
            "s",
            "cudaEventRecord(e, s); cudaEventSynchronize(e); cudaEventDestroy(e);",
        ),
        (
            "auto before = at::cuda::getCurrentCUDAStream(); auto s = at::cuda::getStreamFromPool(); cudaDeviceSynchronize(); at::cuda::setCurrentCUDAStream(s);",
            "at::cuda::getCurrentCUDAStream()",
            "cudaDeviceSynchronize(); at::cuda::setCurrentCUDAStream(before);",
        ),
    ):
        yield wrap_kernel(kernel, f"{begin} k<<<blocks, threads, 0, {stream}>>>{FLOATS} {end}")  # fmt: skip


# Sources that bring headers of CUDA that torch's headers read as well, and none of torch's for CUDA.
WITH_CUDA_HEADERS = (
    ("cublas_v2.h", wrap_kernel(write_float_kernel("v + 5.f"), f"k<<<blocks, threads>>>{FLOATS} cublasHandle_t handle; cublasCreate(&handle); const float one = 1.f; "
     "cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 64, 64, 64, &one, x.data_ptr<float>(), 64, x.data_ptr<float>(), 64, &one, y.data_ptr<float>(), 64); cublasDestroy(handle);")),
    ("cuda_fp16.h", wrap_kernel("__global__ void k(const float* x, half* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = __float2half(x[i]); }",
     "k<<<blocks, threads>>>(x.data_ptr<float>(), reinterpret_cast<half*>(y.data_ptr()), n);")),
    ("curand_kernel.h", wrap_kernel("__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; curandState state; "
     "curand_init(1234, i, 0, &state); if (i < n) y[i] = x[i] + curand_uniform(&state); }", f"k<<<blocks, threads>>>{FLOATS}")),
)  # fmt: skip


def _cub():
    """CUB's block and warp primitives within kernels, and its device-wide algorithms, whose kernels are CUB's own."""
    head = "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * 128 + threadIdx.x; float v = i < n ? x[i] : 0.f; "
    block = (
        "using R = cub::BlockReduce<float, 128>; __shared__ typename R::TempStorage t; float s = R(t).Sum(v); if (threadIdx.x == 0) t2 = s; __syncthreads(); if (i < n) y[i] = t2;",
        "using R = cub::WarpReduce<float>; __shared__ typename R::TempStorage t[4]; float s = R(t[threadIdx.x / 32]).Sum(v); s = __shfl_sync(0xffffffff, s, 0); t2 = 0; if (i < n) y[i] = s;",
        "using S = cub::BlockScan<float, 128>; __shared__ typename S::TempStorage t; float s; S(t).InclusiveSum(v, s); t2 = 0; if (i < n) y[i] = s;",
        "using S = cub::BlockRadixSort<float, 128, 1>; __shared__ typename S::TempStorage t; float a[1] = {v}; S(t).Sort(a); t2 = 0; if (i < n) y[i] = a[0];",
    )  # fmt: skip
    for body in block:
        yield wrap_kernel(f"{head}__shared__ float t2; {body} }}", f"k<<<blocks, 128>>>{FLOATS}")
    device = "size_t size = 0; {call}(nullptr, size, {arguments}); auto t = torch::empty({{(int64_t)size}}, x.options().dtype(torch::kByte)); {call}(t.data_ptr(), size, {arguments});"
    pointers = "x.data_ptr<float>(), y.data_ptr<float>(), n"
    for call in ("cub::DeviceReduce::Sum", "cub::DeviceScan::InclusiveSum"):
        before = "y.zero_();"
        yield wrap_kernel("", before + device.format(call=call, arguments=pointers))


SINGLES = (
    # shared memory and a barrier
    wrap_kernel("__global__ void k(const float* x, float* y, int n) { __shared__ float t[128]; int i = blockIdx.x * 128 + threadIdx.x; "
          "t[threadIdx.x] = i < n ? x[i] : 0.f; __syncthreads(); for (int s = 64; s > 0; s >>= 1) { if (threadIdx.x < s) "
          "t[threadIdx.x] += t[threadIdx.x + s]; __syncthreads(); } if (i < n) y[i] = t[0]; }", f"k<<<blocks, threads>>>{FLOATS}"),
    # dynamic shared memory
    wrap_kernel("__global__ void k(const float* x, float* y, int n) { extern __shared__ float t[]; int i = blockIdx.x * blockDim.x + threadIdx.x; "
          "t[threadIdx.x] = i < n ? x[i] : 0.f; __syncthreads(); if (i < n) y[i] = t[blockDim.x - 1 - threadIdx.x]; }",
          f"k<<<blocks, threads, threads * sizeof(float)>>>{FLOATS}"),
    # warp shuffles
    wrap_kernel("__inline__ __device__ float warp_sum(float v) { for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o); return v; }\n"
          "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; float v = i < n ? x[i] : 0.f; "
          "v = warp_sum(v); if (i < n) y[i] = v; }", f"k<<<blocks, threads>>>{FLOATS}"),
    # a template over an integer, a functor and launch bounds
    wrap_kernel("struct Scale { float by; __device__ __forceinline__ float operator()(float v) const { return v * by; } };\n"
          "template <int ITEMS, typename F> __global__ __launch_bounds__(256) void k(const float* x, float* y, int n, F f) { "
          "for (int j = 0; j < ITEMS; ++j) { int i = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS + j; if (i < n) y[i] = f(x[i]); } }",
          "k<4><<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, Scale{2.f});"),
    # constant memory and a device variable
    wrap_kernel("__constant__ float table[4] = {1.f, 2.f, 3.f, 4.f};\n__device__ int counter;\n__global__ void k(const float* x, float* y, int n) { "
          "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { y[i] = x[i] * table[i % 4]; atomicAdd(&counter, 1); } }", f"k<<<blocks, threads>>>{FLOATS}"),
    # vector loads
    wrap_kernel("__global__ void k(const float4* x, float4* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float4 v = x[i]; "
          "y[i] = make_float4(v.x + 1, v.y + 1, v.z + 1, v.w + 1); } }",
          "k<<<blocks, threads>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), n / 4);"),
    # half by hand
    wrap_kernel("__global__ void k(const __half* x, __half* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) "
          "y[i] = __float2half(__half2float(x[i]) * 2.f); }",
          "auto h = x.to(torch::kHalf); auto z = torch::empty_like(h); k<<<blocks, threads>>>(reinterpret_cast<const __half*>(h.data_ptr<at::Half>()), "
          "reinterpret_cast<__half*>(z.data_ptr<at::Half>()), n); y.copy_(z);"),
    # bfloat16 by hand
    wrap_kernel("__global__ void k(const __nv_bfloat16* x, __nv_bfloat16* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) "
          "y[i] = __float2bfloat16(__bfloat162float(x[i]) + 1.f); }",
          "auto h = x.to(torch::kBFloat16); auto z = torch::empty_like(h); k<<<blocks, threads>>>(reinterpret_cast<const __nv_bfloat16*>("
          "h.data_ptr<at::BFloat16>()), reinterpret_cast<__nv_bfloat16*>(z.data_ptr<at::BFloat16>()), n); y.copy_(z);"),
    # several kernels, a static one and one in an unnamed namespace
    wrap_kernel("static __global__ void first(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n"
          "namespace { __global__ void second(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += 1.f; } }",
          f"first<<<blocks, threads>>>{FLOATS} second<<<blocks, threads>>>(y.data_ptr<float>(), n);"),
    # macros of its own, a typedef, an enum, host helpers
    wrap_kernel("#define TILE 16\n#define CEIL(a, b) (((a) + (b) - 1) / (b))\nusing index_t = int;\nenum class Mode { Add, Mul };\n"
          "inline int divide(int a, int b) { return CEIL(a, b); }\n__host__ __device__ inline float twice(float v) { return 2 * v; }\n"
          "template <Mode M> __global__ void k(const float* x, float* y, index_t rows, index_t columns) { index_t r = blockIdx.y * TILE + threadIdx.y, "
          "c = blockIdx.x * TILE + threadIdx.x; if (r < rows && c < columns) { float v = x[r * columns + c]; y[r * columns + c] = M == Mode::Add ? v + 1 : twice(v); } }",
          "dim3 block(TILE, TILE); dim3 grid(divide(x.size(1), TILE), divide(x.size(0), TILE)); "
          "k<Mode::Mul><<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));"),
    # types found by the host code alone: the index type of a generic kernel follows from torch's return types
    wrap_kernel("template <typename I> __global__ void k(const float* x, float* y, I n) { I i = blockIdx.x * (I)blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }",
          "k<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel()); k<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(0));"
          " auto rows = x.sizes()[0]; k<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows);"),
    # device properties and occupancy
    wrap_kernel(write_float_kernel("v + 3.f"), f"auto* p = at::cuda::getCurrentDeviceProperties(); int m = p->multiProcessorCount; k<<<m * 32, threads>>>{FLOATS}"),
    # const pointers, mutable pointers, options in a variable, vectors of sizes
    wrap_kernel(write_float_kernel("v + 4.f"), "auto options = torch::TensorOptions().dtype(x.dtype()).device(x.device()).requires_grad(false); "
          "std::vector<int64_t> shape = {x.size(0), x.size(1)}; auto z = torch::zeros(shape, options); "
          "k<<<blocks, threads>>>(x.const_data_ptr<float>(), z.mutable_data_ptr<float>(), n); y.copy_(z);"),
)  # fmt: skip
