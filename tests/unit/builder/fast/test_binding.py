"""Which binding files are written anew; what they do is compared with pybind11's own in test_binding_built."""

from dataclasses import replace

import pytest

from harness.builder.fast.binding import exports_nothing, write_binding
from harness.domain import BuildRequest

REQUEST = BuildRequest(
    name="ext",
    cpp_sources=(
        "torch::Tensor f(torch::Tensor x, const at::Tensor& y, int64_t n, double eps = 1e-5, bool flag = true);",
    ),
    cuda_sources=("// kernels",),
    functions=(("f", "f"),),
)


def bind(source, *names, **changes):
    functions = tuple((name, name) for name in names or ("f",))
    return write_binding(replace(REQUEST, cpp_sources=(source,), functions=functions, **changes))


def test_a_prototype_is_bound_without_torchs_headers():
    text = write_binding(REQUEST)
    assert "torch/" not in text
    assert '"t", "tcldb", thunk_f' in text
    assert "PyInit_ext" in text


@pytest.mark.parametrize(
    "source",
    [
        "torch::Tensor f(torch::Tensor);",
        "torch::Tensor f(const torch::Tensor &x) ;",
        "#include <torch/extension.h>\n\n// forward\ntorch::Tensor f(torch::Tensor x); /* two\nlines */",
        "extern torch::Tensor f(\n    torch::Tensor x,\n    const int64_t n\n);",
        "void f();", "void f(void);", "int64_t f(int64_t n);", "std::vector<torch::Tensor> f(at::Tensor x);",
        "torch::Tensor f(torch::Tensor const& x);", "torch::Tensor g(int n); torch::Tensor f(float x);",
        "#include <optional>\ntorch::Tensor f(torch::optional<torch::Tensor> x = torch::nullopt);",
        "torch::Tensor f(const c10::optional<at::Tensor>& x, std::vector< int64_t > sizes);",
        "torch::Tensor f(std::vector<torch::Tensor> const &x, std::optional<torch::Tensor>);",
    ],
)  # fmt: skip
def test_plain_prototypes_are_ours(source):
    assert bind(source) is not None


@pytest.mark.parametrize(
    "source",
    [
        "torch::Tensor f(torch::Tensor x) { return x; }", "#define T torch::Tensor\nT f(T x);", "Tensor f(Tensor x);",
        "torch::Tensor f(torch::Tensor* x);", "torch::Tensor f(c10::optional<int64_t> x);", "auto f(int n);",
        "torch::Tensor f(std::vector<int64_t>& sizes);", "torch::Tensor f(const std::vector<int64_t> sizes);",
        "torch::Tensor& f(torch::Tensor& x);", "static int f(int x);",
        "template <typename T> T f(T x);", "namespace a { int f(int x); }", "using torch::Tensor; Tensor f(Tensor x);",
        "torch::Tensor f(unsigned n);", "torch::Tensor f(size_t n);", "torch::Tensor f(int n = size);", "int f(int n)",
        "torch::Tensor f(int); torch::Tensor f(double);", "torch::Tensor g(int n);", "", "int f(int n) noexcept;",
        "torch::Tensor f(int (*g)(int));", "__global__ void f(int n);", "inline int f(int n);", "long long f(int n);",
        "torch::Tensor f(long long n);", "torch::Tensor f(int n[3]);", "torch::Tensor f(int n, ...);",
        "#include <ATen/ATen.h>\nint f(int n);", "struct S; torch::Tensor f(S s);", "torch::Tensor f(int64_t& n);",
    ],
)  # fmt: skip
def test_anything_else_is_left_to_pybind11(source):
    assert bind(source) is None


@pytest.mark.parametrize(
    "change",
    [
        {"functions": None}, {"functions": ()}, {"with_pytorch_error_handling": False}, {"is_python_module": False},
        {"functions": (("f", 'a "quoted" text'),)}, {"functions": (("f", "line\nbreak"),)},
        {"functions": (("f", "\\"),)},
    ],
)  # fmt: skip
def test_a_request_that_asks_for_more_is_left_to_pybind11(change):
    assert write_binding(replace(REQUEST, **change)) is None


@pytest.mark.parametrize(
    ("source", "functions", "expected"),
    [
        ("", None, True), ("#include <torch/extension.h>\n// the module is in the CUDA source\n", None, True),
        ("torch::Tensor f(torch::Tensor x);", None, True), ("torch::Tensor f(torch::Tensor x);", (("f", ""),), False),
        ("", (), False), ("#include <fstream>", None, False), ("int answer() { return 42; }", None, False),
        ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", None, False), ("misspelled;", None, False),
    ],
)  # fmt: skip
def test_a_source_that_only_declares_exports_nothing(source, functions, expected):
    assert exports_nothing(replace(REQUEST, cpp_sources=(source,), functions=functions)) == expected
