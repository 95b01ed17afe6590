# ruff: noqa: E501 - a program to a line
"""Small C++ programs over torch's C++ API, always the same ones: what both strategies of a build must agree on.

Each stands in a namespace of its own; its `run` takes one float tensor, 6 by 8. One source holds them all.
"""

from itertools import product

from cuda_corpus import ATEN, CHECKS, DISPATCHES, GENERIC_KERNELS

OPTIONS = (
    "torch::zeros({2, 3}, torch::TensorOptions().dtype(torch::kFloat64).requires_grad(false))", "torch::ones({4}, torch::kInt32)",
    "torch::full({2}, 7, torch::dtype(torch::kLong))", "torch::empty({0, 3}, x.options())", "at::zeros(x.sizes(), x.options().dtype(at::kBool))",
    "torch::eye(3, at::device(at::kCPU).dtype(at::kDouble))", "torch::linspace(0, 1, 5)", "torch::tensor({1.5, 2.5})", "torch::tensor({1, 2, 3}, torch::kInt16)",
    "x.new_full({2, 2}, 0.5)", "x.to(x.options().dtype(torch::kHalf))", "torch::scalar_tensor(3.25)", "at::empty_strided({2, 3}, {1, 2}, x.options()).fill_(2)",
    "x.to(torch::kCPU, torch::kDouble, false, true)", "torch::randn({3}, at::make_generator<at::CPUGeneratorImpl>(uint64_t(7)), x.options())",
)  # fmt: skip
INDEXING = (
    "x.index({torch::indexing::Slice(1, 4), 2})", "x.index({torch::indexing::Ellipsis, torch::indexing::Slice(torch::indexing::None, torch::indexing::None, 2)})",
    "x.index({x > 0})", "[&] { auto y = x.clone(); y.index_put_({0, torch::indexing::Slice()}, 9); return y; }()", "x[1][2]", "x.take(torch::tensor({0, 5, 7}))",
    "x.gather(1, torch::zeros({6, 2}, torch::kLong))", "x.unfold(1, 3, 2)", "x.as_strided({2, 2}, {8, 1}, 3)", "x.diagonal()",
)  # fmt: skip
WHOLE = (
    # accessors and pointers
    "auto y = torch::empty_like(x); auto a = x.accessor<float, 2>(); auto b = y.accessor<float, 2>(); for (int64_t i = 0; i < a.size(0); ++i) for (int64_t j = 0; j < a.size(1); ++j) b[i][j] = a[i][j] * 2; return y;",
    "auto y = torch::empty_like(x); auto a = x.accessor<float, 2>(); for (int64_t i = 0; i < a.size(0); ++i) { auto row = a[i]; float s = 0; for (int64_t j = 0; j < row.size(0); ++j) s += row[j]; y[i].fill_(s); } return y;",
    "auto y = torch::empty_like(x); const float* p = x.const_data_ptr<float>(); float* q = y.mutable_data_ptr<float>(); for (auto i : c10::irange(x.numel())) q[i] = p[i] + i; return y;",
    "auto y = x.clone(); float* p = y.data_ptr<float>(); std::reverse(p, p + y.numel()); return y;", "auto a = x.packed_accessor32<float, 2>(); return torch::scalar_tensor(a[1][1]);",
    # names of C's mathematics, which overload only where <math.h> is included
    "return torch::scalar_tensor(abs(x.data_ptr<float>()[0] - 0.5f));", "return torch::scalar_tensor(pow(2.5f, 2) + floor(x.data_ptr<float>()[1]) + abs(int64_t(-5000000000)));",
    # threads
    "auto y = torch::empty_like(x); auto* p = x.data_ptr<float>(); auto* q = y.data_ptr<float>(); at::parallel_for(0, x.numel(), 4, [&](int64_t begin, int64_t end) { for (int64_t i = begin; i < end; ++i) q[i] = std::exp(p[i]); }); return y;",
    "float s = at::parallel_reduce(0, x.numel(), 48, 0.f, [&](int64_t begin, int64_t end, float v) { for (int64_t i = begin; i < end; ++i) v += x.data_ptr<float>()[i]; return v; }, std::plus<float>()); return torch::scalar_tensor(s);",
    # guards
    "torch::NoGradGuard guard; return x.requires_grad_(true) * 2;", "at::AutoDispatchBelowAutograd guard; return x.exp();", "c10::DeviceGuard guard(x.device()); return x + 1;",
    "at::InferenceMode mode; return x.sqrt();", "c10::OptionalDeviceGuard guard(at::device_of(x)); return x - 1;", "torch::AutoGradMode mode(false); return x.detach() * 3;",
    # checks that fail, and errors of other kinds
    'TORCH_CHECK(x.dim() == 3, "three dimensions, not ", x.dim()); return x;', "TORCH_CHECK(false); return x;", 'TORCH_CHECK_EQ(x.dim(), 9) << "nine"; return x;', 'TORCH_CHECK_TYPE(x.is_cuda(), "type of ", x.device()); return x;',
    'TORCH_CHECK_INDEX(x.numel() < 3, "index ", x.numel()); return x;', 'TORCH_CHECK_VALUE(x.size(0) > 99, "value"); return x;', 'TORCH_CHECK_NOT_IMPLEMENTED(false, "no"); return x;', 'AT_ERROR("no ", x.sizes());',
    'throw std::runtime_error("mine"); return x;', 'throw std::invalid_argument("mine"); return x;', 'throw std::out_of_range("mine"); return x;', 'C10_THROW_ERROR(ValueError, "value"); return x;', "return x.view({5, 5});",
    "return x.matmul(x);", "return x.data_ptr<double>() ? x : x + 1;", "return x.accessor<float, 3>()[0][0][0] > 0 ? x : -x;", "return at::cat({x, x.narrow(1, 0, 2)}, 0);",
    "try { x.view({5, 5}); } catch (const c10::Error& error) { return torch::scalar_tensor((int64_t)std::string(error.what_without_backtrace()).size()); } return x;",
    # templates, lambdas, the standard library
    "auto twice = [](auto v) { return v + v; }; return twice(x) + twice(1.5);", "std::vector<at::Tensor> parts = x.chunk(2, 1); std::swap(parts[0], parts[1]); return torch::cat(parts, 1);", "std::function<at::Tensor(at::Tensor)> f = [](at::Tensor v) { return v.neg(); }; return f(x);",
    "auto [values, places] = x.sort(1); return values + places;", "auto [v, i] = at::topk(x, 2); return v * i;", "std::map<int64_t, at::Tensor> m; for (int64_t i = 0; i < 3; ++i) m[i] = x[i]; return m.at(1);", "c10::SmallVector<int64_t, 4> s(x.sizes().begin(), x.sizes().end()); return x.reshape({s[1], s[0]});",
    "std::optional<at::Tensor> bias; return bias ? x + *bias : x - 1;", "c10::optional<at::Tensor> bias(x); return bias.value() * 2;", "const std::array<int64_t, 2> s = {8, 6}; return x.reshape(s);", "at::Scalar s = 2.5; return x * s + at::Scalar(1);", "auto y = at::ones(1); for (const auto& part : x.unbind(0)) y = y + part.sum(); return y;",
    # modules, autograd and functions of torch's C++ frontend
    "torch::manual_seed(3); auto layer = torch::nn::Linear(8, 2); return layer(x).detach();", "return torch::nn::functional::gelu(x);", "return torch::nn::functional::softmax(x, torch::nn::functional::SoftmaxFuncOptions(1));", "auto leaf = x.detach().clone().requires_grad_(true); leaf.pow(3).sum().backward(); return leaf.grad();",
    "return torch::conv2d(x.reshape({1, 1, 6, 8}), torch::ones({1, 1, 3, 3}));", "return torch::layer_norm(x, {8});", "return torch::linalg_norm(x, 2);", "return torch::einsum(\"ij,kj->ik\", {x, x});", "namespace F = torch::nn::functional; return F::pad(x, F::PadFuncOptions({1, 1}).value(4));",
    # small types and scalars
    "at::Half h = 1.5f; c10::BFloat16 b = 2.25f; return x * static_cast<float>(h) + static_cast<float>(b * b);", "auto h = x.to(torch::kHalf); auto* p = h.data_ptr<at::Half>(); for (int i = 0; i < 8; ++i) p[i] = p[i] * at::Half(2); return h;",
    "auto b = x.to(torch::kBFloat16); auto* p = b.data_ptr<c10::BFloat16>(); for (int i = 0; i < 8; ++i) p[i] += c10::BFloat16(1); return b;", "c10::complex<float> z(1, 2); return torch::full({2}, c10::complex<double>(z.real(), z.imag() * 2), torch::kComplexFloat);", "return torch::scalar_tensor(x.item<float>());", "return torch::scalar_tensor(x[0][0].item<double>());",
    "return torch::scalar_tensor(std::numeric_limits<at::Half>::max());", "return torch::scalar_tensor((int64_t)at::typeMetaToScalarType(x.dtype()));", "return torch::scalar_tensor((int64_t)x.element_size() * x.stride(0));",
)  # fmt: skip


def list_host_bodies():
    """What stands in each program's `run`, in a fixed order."""
    bodies = [f"return {call.replace('kCUDA', 'kCPU')};" for call in (*ATEN, *OPTIONS, *INDEXING)]
    bodies += [f"{check.replace('is_cuda', 'is_cpu').replace('kCUDA', 'kCPU')}; return x;" for check in CHECKS]
    for dispatch, statement in product(DISPATCHES, GENERIC_KERNELS):
        typed = statement.replace("<T>", "<scalar_t>").replace("T(", "scalar_t(")
        loop = f"[&] {{ auto* p = x.data_ptr<scalar_t>(); auto* q = y.data_ptr<scalar_t>(); each(p, q, x.numel(), [](const scalar_t* x, scalar_t* y, int64_t i) {{ {typed} }}); }}"
        bodies.append(
            f"auto y = torch::empty_like(x); {dispatch.format(n=chr(34) + 'run' + chr(34), b=loop)}; return y;"
        )
    return [*bodies, *WHOLE]


def write_host_source(bodies):
    """One source with all programs and `run_program(number, x)`, which runs one of them."""
    each = "template <typename T, typename F> void each(const T* x, T* y, int64_t n, F f) { for (int64_t i = 0; i < n; ++i) f(x, y, i); }\n"
    programs = "".join(
        f"namespace h{n} {{ at::Tensor run(torch::Tensor x) {{ {body} }} }}\n" for n, body in enumerate(bodies)
    )
    cases = "".join(f"case {n}: return h{n}::run(x); " for n in range(len(bodies)))
    return (
        "#include <map>\n#include <functional>\n#include <ATen/Parallel.h>\n#include <ATen/CPUGeneratorImpl.h>\n#include <c10/util/irange.h>\n"
        f"{each}{programs}at::Tensor run_program(int64_t number, torch::Tensor x) {{ switch (number) {{ {cases} }} return at::Tensor(); }}\n"
    )
