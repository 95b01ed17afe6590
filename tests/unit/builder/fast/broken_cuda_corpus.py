# ruff: noqa: E501 - a program to a line
"""Small CUDA programs that no strategy of a build may build."""

from cuda_corpus import FLOATS, Program, wrap_kernel, write_float_kernel


def list_broken_programs():
    """Programs that no strategy may build, each for a reason of its own."""
    kernel = write_float_kernel("v * 2.f")
    launch = f"k<<<blocks, threads>>>{FLOATS}"
    bodies = [
        *(wrap_kernel(write_float_kernel(expression), launch) for expression in BROKEN_EXPRESSIONS),
        *(wrap_kernel(kernel, statement) for statement in BROKEN_STATEMENTS),
        wrap_kernel("__global__ int k(float* y) { return 1; }", "k<<<1, 1>>>(y.data_ptr<float>());"),
        wrap_kernel("void k(float* y) {}", "k<<<1, 1>>>(y.data_ptr<float>());"),
        wrap_kernel(f"inline float on_host(float v) {{ return v; }}\n{write_float_kernel('on_host(v)')}", launch),
        wrap_kernel(f"{kernel}\n{kernel}", launch),
        wrap_kernel("template <typename T> __global__ void k(T* y) { y[0] = typename T::missing(); }", "k<float><<<1, 1>>>(y.data_ptr<float>());"),
        wrap_kernel("__global__ void k(at::Tensor y) { y[0]; }", "k<<<1, 1>>>(y);") .replace("y[0];", "y.no_such_method();"),
        wrap_kernel("__global__ void k(__half* y) { y[0] = __half(2.5f); }", "k<<<1, 1>>>((__half*)y.data_ptr());"),
    ]  # fmt: skip
    return [Program(name=f"b{number}", body=body) for number, body in enumerate(bodies)]


BROKEN_EXPRESSIONS = (
    "missing(v)",
    "v *",
    "v.size()",
    '"text"',
    "at::no_such_function(v)",
    "x[i][0]",
    "static_cast<dim3>(v)",
    "blockIdx.w",
)
BROKEN_STATEMENTS = (
    "k<<<blocks, threads>>>(x.data_ptr<float>());", "k<<<>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);",
    "k<<<blocks, threads>>>(x.data_ptr<int>(), y.data_ptr<float>(), n);", "k<<<blocks, threads>>>(x, y, n);",
    "x.no_such_method();", "torch::no_such_function(x);", "auto z = torch::empty_like(x, 1, 2, 3, 4, 5);", "int z = x;",
    "x.sum(torch::kFloat32, 1, 2, 3);", "TORCH_CHECK();", "return 1.5;", "auto options = torch::TensorOptions().no_such_option(1);",
    "const int m = 1; m = 2;", "at::cuda::NoSuchGuard guard(x.device());", "k<float><<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);",
    'AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", [&] { no_such_kernel<scalar_t><<<1, 1>>>(); });',
)  # fmt: skip
