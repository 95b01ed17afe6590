"""CUDA text as C++ text: launches, kernels, shared memory and names of devices, in the forms that people write."""

import pytest

from harness.emulator.rewrite import rewrite_device_source, rewrite_host_source


def rewrite(text: str, *, checked: bool = False) -> str:
    found, problems = rewrite_device_source(text, checked=checked)
    assert problems == ()
    return found


@pytest.mark.parametrize(
    ("launch", "callee", "configuration"),
    [
        ("k<<<g, b>>>(x);", "k(x)", "g, b"),
        ("k<float, 4><<<g, b, 0, s>>>(x);", "k<float, 4>(x)", "g, b, 0, s"),
        ("ns::k<T><<<dim3(1, 2), b>>>(x);", "ns::k<T>(x)", "dim3(1, 2), b"),
        ("(*table[i])<<<1, f(a, b)>>>(x);", "(*table[i])(x)", "1, f(a, b)"),
        ("pick(n)<<<1, 2>>>(x);", "pick(n)(x)", "1, 2"),
        ("p.kernel<<<1, 2>>>();", "p.kernel()", "1, 2"),
        ("k<(a > b)><<<1, 2>>>(x);", "k<(a > b)>(x)", "1, 2"),
        ("k<<<1, v[i > 2]>>>(x);", "k(x)", "1, v[i > 2]"),
    ],
)
def test_a_launch_becomes_a_configuration_and_a_call(launch: str, callee: str, configuration: str) -> None:
    assert f"(::harness_emulator::configure({configuration}), {callee});" in rewrite(launch).replace(" (x)", "(x)")


@pytest.mark.parametrize(
    "text",
    [
        "void f() { dim3 blockDim(16, 16); k<<<1, blockDim>>>(x); }",
        "void f() { const dim3 gridDim = g(), blockDim{16}; k<<<gridDim, blockDim>>>(x); }",
        "void f() { dim3 gridDim; gridDim.x = 3; int threadIdx = 3; h(gridDim, threadIdx); }",
        "void f() { auto [gridDim, blockDim] = g(); k<<<gridDim, blockDim>>>(x); }",
        "void f(dim3 gridDim, const dim3& blockDim) { if (n) { k<<<gridDim, blockDim>>>(x); } }",
        "void f(dim3 gridDim, dim3 blockDim = dim3(1));",
        "auto f = [&](int blockDim) -> int { return blockDim; };",
        "struct S { int n() { return blockDim.x; } dim3 blockDim; };",
        "#define GO(n) dim3 blockDim(n); k<<<1, blockDim>>>(x)\n",
        "#define GO(n) do { dim3 blockDim(n); k<<<1, blockDim>>>(x); } while (0)\n",
    ],
)
def test_a_variable_of_the_name_of_an_index_is_a_variable(text: str) -> None:
    assert "::harness_emulator::current" not in rewrite(text)


@pytest.mark.parametrize(
    "text",
    [
        "void f() { dim3 blockDim(16); } __device__ int g() { return @; }",
        "__device__ int g() { { int blockDim = 1; } return 2 * @.x; }",
        "void f(dim3 blockDim); __device__ dim3 g() { return @; }",
        "#define WIDTH @.x\nvoid f() { dim3 blockDim(16); }",
        "#define GO dim3 blockDim(1)\n__device__ int g() { return h(1, @); }",
        "__device__ int g(int n) { dim3 gridDim(1); return n > @.x ? @.y : n & @.z; }",
    ],
)
def test_outside_its_block_the_name_is_the_index_again(text: str) -> None:
    index = "(::harness_emulator::current->block->launch->block)"
    assert rewrite(text.replace("@", "blockDim")).count(index) == text.count("@")


def test_a_launch_after_a_condition_leaves_the_condition_alone() -> None:
    assert rewrite("if (n) k<<<1, 2>>>();").startswith("if (n) (::harness_emulator::configure(1, 2), k")


def test_a_launch_in_a_macro_and_over_several_lines_keeps_every_line() -> None:
    text = "#define GO(k) k<<<1, \\\n  2>>>(x)\nint a;\nk<<<1, // one\n 2>>>(\nx);\nint b;\n"
    found = rewrite(text)
    assert found.count("\n") == text.count("\n")
    assert found.splitlines()[6] == "int b;"
    assert "//" not in found.split("configure(", 2)[2].split(")")[0]


def test_chevrons_in_comments_and_strings_are_no_launches() -> None:
    text = '// k<<<1, 2>>>(x)\nconst char* s = "k<<<1, 2>>>(x)"; auto r = R"(k<<<1>>>(x))";\n'
    assert rewrite(text) == text


def test_a_kernel_runs_its_body_for_each_thread() -> None:
    found = rewrite("template <int N> __global__ void __launch_bounds__(N, 2) k(float* x) { x[0] = f(); }")
    assert "run_kernel(__func__, __FILE__, __LINE__, ::harness_emulator::Bounds{N, 2}, " in found
    assert '{{"x", ::harness_emulator::find_address(x)}}, [=]() mutable' in found
    assert "__launch_bounds__" not in found and "x[0] = f(); }); " in found


def test_a_declaration_of_a_kernel_stays() -> None:
    text = "__global__ void k(float* x);"
    assert rewrite(text) == text


def test_a_macro_that_stands_for_a_kernels_head_is_known() -> None:
    assert "run_plain_kernel" in rewrite("#define KERNEL __global__ void\nKERNEL k(float* x) { x[threadIdx.x] = 1; }")


@pytest.mark.parametrize(
    ("body", "is_simple"),
    [
        ("y[threadIdx.x] = fmaxf(x[threadIdx.x], 0.f);", True),
        ("y[threadIdx.x] = twice(x[0]);", True),
        ("y[threadIdx.x] = TWICE(x[0]);", True),
        ("__syncthreads();", False),
        ("y[0] = waits(x[0]);", False),
        ("y[0] = unknown(x[0]);", False),
        ("y[0] = indexed();", False),
        ("auto f = [&] { return 1; };", False),
        ("y[0] = T::apply(x[0]);", False),
    ],
)
def test_only_kernels_that_cannot_wait_run_as_plain_loops(body: str, is_simple: bool) -> None:
    text = (
        "__device__ float twice(float v) { return v * expf(v); }\n#define TWICE(v) (twice(v) * 2)\n"
        "__device__ float waits(float v) { return twice(__shfl_down_sync(~0u, v, 1)); }\n"
        "__device__ int indexed() { return threadIdx.x; }\n"
        f"__global__ void k(float* x, float* y) {{ {body} }}"
    )
    assert ("run_plain_kernel" in rewrite(text)) == is_simple
    assert "run_plain_kernel" not in rewrite(text, checked=True)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float* x, int n) { CUDA_KERNEL_LOOP(i, n) { x[i] = 1; } }",
        "#define KERNEL(name) __global__ void name(float* x) { x[threadIdx.x] = 1; }\n",
    ],
)
def test_a_kernel_whose_indices_are_a_macros_affair_is_no_plain_loop(text: str) -> None:
    assert "::run_kernel(" in rewrite(text)


def test_launch_bounds_of_torchs_stand_before_the_kernel_too() -> None:
    found = rewrite("C10_LAUNCH_BOUNDS_1(1024)\n__global__ void k(float* x) { x[0] = f(); }")
    assert "Bounds{1024}" in found and "C10_LAUNCH" not in found


@pytest.mark.parametrize(
    "declaration",
    [
        "__shared__ float a[16][17], b;",
        "__shared__ typename R<T, 4>::TempStorage a, b;",
        "__shared__ __align__(16) float a[N * 2], b[4];",
        "static __shared__ volatile int a[32], b;",
        "__shared__ union { typename L::TempStorage load; float store[4]; } a, b[2];",
        "__shared__ union Both { typename L::TempStorage load; float store[4]; } a, b;",
        "__shared__ struct Pair a, b;",
        "alignas(16) __shared__ Pair<int, float> a[2], b;",
    ],
)
def test_each_shared_variable_is_found(declaration: str) -> None:
    found = rewrite(f"__global__ void k() {{ {declaration} }}")
    assert found.count("::harness_emulator::shared_variable<") == 2
    assert "harness_type_a& a =" in found and "harness_type_b& b =" in found and "__shared__" not in found


def test_dynamic_shared_memory_is_a_pointer() -> None:
    found = rewrite("__device__ void f() { extern __shared__ __align__(16) unsigned char s[]; }")
    assert "unsigned char harness_type_s[];" in found and "* s = ::harness_emulator::dynamic_shared<" in found


def test_shared_memory_of_a_whole_source_is_found_where_it_is_used() -> None:
    found = rewrite("extern __shared__ float s[];\nint a;\n")
    assert "#define s (::harness_emulator::dynamic_shared<" in found and "#line 1" in found


def test_a_shared_declaration_of_another_form_is_named() -> None:
    _, problems = rewrite_device_source("__global__ void k() {\n__shared__ float (*a)[4]; }", checked=False)
    assert [problem.line for problem in problems] == [2]


def test_initialised_shared_variable_is_left_to_the_compiler() -> None:
    assert "__shared__ int a = 3;" in rewrite("__global__ void k() { __shared__ int a = 3; }")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.is_cuda()", "x.is_cpu()"),
        ("x.get_device() == 0", "x.is_cuda() == 0"),
        ("x.device().index()", "x.device().is_cuda()"),
        ("found.index()", "found.index()"),
        (
            "case torch::DeviceType::CUDA: case torch::DeviceType::CPU:",
            "case torch::DeviceType::CPU: case torch::DeviceType::CUDA:",
        ),
        ("TORCH_LIBRARY_IMPL(ops, CPU, m)", "TORCH_LIBRARY_IMPL(ops, CUDA, m)"),
        ("x.device().is_cpu()", "x.device().is_cuda()"),
        ("x.type().is_cuda()", "x.is_cpu()"),
        ("o.device(torch::kCUDA, 0)", "o.device(torch::kCPU, 0)"),
        ("d == torch::kCPU", "d == torch::kCUDA"),
        ("torch::kCPU != d", "torch::kCUDA != d"),
        ("o.device(torch::kCPU)", "o.device(torch::kCPU)"),
        ("c10::DeviceType::CUDA", "c10::DeviceType::CPU"),
        ("x.cuda()", "x.cpu()"),
        ("x.cpu()", "x.clone()"),
        ('torch::Device("cuda:0")', 'torch::Device("cpu")'),
        ('"x must be a cuda tensor"', '"x must be a cuda tensor"'),
        ("at::cuda::getCurrentCUDAStream()", "at::cuda::getCurrentCUDAStream()"),
        ("#define CHECK(x) TORCH_CHECK(x.is_cuda())", "#define CHECK(x) TORCH_CHECK(x.is_cpu())"),
        ("torch::cuda::is_available()", "([](auto...) { return true; })()"),
        ("TORCH_LIBRARY_IMPL(ops, CUDA, m)", "TORCH_LIBRARY_IMPL(ops, CPU, m)"),
        ("c10::DispatchKey::CUDA", "c10::DispatchKey::CPU"),
    ],
)
def test_requests_for_the_gpu_become_requests_for_the_cpu(text: str, expected: str) -> None:
    assert rewrite_host_source(text) == expected


def test_casts_that_hide_a_kernel_are_left_out() -> None:
    found = rewrite(
        "cudaLaunchCooperativeKernel((void*)k, g, b, (void**)args); cudaFuncSetAttribute((const void*)k<1>, a, 2);"
    )
    assert found == "cudaLaunchCooperativeKernel(k, g, b, (void**)args); cudaFuncSetAttribute(k<1>, a, 2);"


def test_a_launch_through_a_void_pointer_is_no_fault_of_the_program():
    text = (
        "__global__ void k(int) { }\nvoid run(void** args) {\nconst void* chosen = (void*)k;\n{}(chosen, 1, 1, args); }"
    )
    for function, expected in (
        ("cudaLaunchCooperativeKernel", [(4, "a kernel launched through a void pointer")]),
        ("f", []),
    ):
        _, problems = rewrite_device_source(text.replace("{}(", f"{function}("), checked=False)
        assert [(problem.line, problem.message) for problem in problems] == expected


@pytest.mark.parametrize(
    ("assembly", "expected"),
    [
        ('asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));', "current->lane"),
        ('asm volatile("mov.u32 %0, %%laneid;" : "=r"(r) :: "memory");', "ptx::give(( r ), harness_o0)"),
        ('asm("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(p));', "ptx::copy("),
        ('asm volatile("bar.sync 1, 64;");', "wait_at_barrier(int(1), int(64)"),
        ('asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));', "__half::harness_from("),
        ('asm("mul.wide.s32 %0, %1, %2;" : "=l"(w) : "r"(a), "r"(b));', "int64_t(int64_t("),
        ('asm("mov.b64 {%0, %1}, %2;" : "=r"(a), "=r"(b) : "l"(w));', "ptx::unpack("),
        ('asm("mov.b32 %0, {%1, %2};" : "=r"(w) : "h"(a), "h"(b));', "ptx::pack("),
        ('asm("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(y) : "f"(x), "r"(n));', "__shfl_xor_sync("),
        (
            'asm("atom.global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"(p), "r"(v));',
            "atomicAdd(reinterpret_cast<unsigned*>",
        ),
        (
            'asm("atom.global.min.s64 %0, [%1], %2;" : "=l"(o) : "l"(p), "l"(v));',
            "atomicMin(reinterpret_cast<long long*>",
        ),
        ('asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));', "__hfma2("),
        ('asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(d) : "r"(a), "r"(b), "r"(c));', ">> 7 & 1)"),
        ('asm("ld.global.nc.v2.f32 {%0, %1}, [%2 + 8];" : "=f"(a), "=f"(b) : "l"(p));', "ptx::load<float>("),
        (
            'asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(r) : "l"(p));',
            "uint32_t(::harness_emulator::ptx::take<uint64_t>(harness_r_a))",
        ),
        ('asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(r) : "f"(x));', "__float2int_rz("),
        ('asm("cvt.rni.f32.f32 %0, %1;" : "=f"(y) : "f"(x));', "::nearbyint("),
        ('asm("{ .reg .pred p; not.pred p, p; }");', "!::harness_emulator::ptx::take<bool>(harness_r_p)"),
        ('asm("{ .reg .b32 r<2>; mov.u32 r1, 4; }");', "uint32_t harness_r_r0 = {};uint32_t harness_r_r1 = {};"),
        ('asm(R"(mov.u32 %0, %laneid;)" : "=r"(r));', "current->lane"),
        ('asm("redux.sync.add.s32 %0, %1, %2;" : "=r"(r) : "r"(v), "r"(m));', "__reduce_add_sync("),
        ('asm("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;" :: "l"(p), "r"(v));', "<__nv_bfloat162*>"),
        ('asm("red.global.max.s32 [%0], %1;" :: "l"(p), "r"(v));', "atomicMax(reinterpret_cast<int*>"),
        *(
            (
                f'asm("ldmatrix.sync.aligned.{order}.shared.b16 {{%0,%1,%2,%3}}, [%4];" '
                ': "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(p));',
                "load_matrix<true>(",
            )
            for order in ("m8n8.x4.trans", "x4.trans.m8n8", "trans.m8n8.x4")
        ),
        (
            'asm("ld.global.L2::cache_hint.v2.f32 {%0, %1}, [%2], %3;" : "=f"(a), "=f"(b) : "l"(p), "l"(h));',
            "ptx::pointer(harness_o2), harness_o0, harness_o1)",
        ),
    ],
)
def test_known_assembly_becomes_calls(assembly: str, expected: str) -> None:
    assert expected in rewrite(f"__device__ void f() {{ {assembly} }}")


@pytest.mark.parametrize(
    "instruction",
    [
        "wgmma.fence.sync.aligned",
        "tcgen05.alloc.b32 [%0], 1",
        "cp.async.bulk.x.y [%0], [%1]",
        "atom.global.cas.b16 %0, [%0], 1, 2",
        "cvt.rp.f32.s32 %0, %0",
        "cvt.s32.f32 %0, %0",
    ],
)
def test_unknown_assembly_is_named(instruction: str) -> None:
    _, problems = rewrite_device_source(
        f'\n__device__ void f(int a) {{ asm volatile("{instruction};" :: "r"(a)); }}', checked=False
    )
    assert problems[0].line == 2 and instruction.split(" ", 1)[0] in problems[0].message


def test_assembly_that_macros_put_together_is_named() -> None:
    text = '#define RELU(type) asm("max." #type " %0, %0, 0;" : "+f"(x))\n'
    _, problems = rewrite_device_source(text, checked=False)
    assert "assembled by macros" in problems[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(x.data_ptr<float>());", "f(::harness_emulator::known(x).data_ptr<float>());"),
        ("x.contiguous().data_ptr();", "::harness_emulator::known(x.contiguous()).data_ptr();"),
        ("a ? b.value().data_ptr<T>() : nullptr;", "a ? ::harness_emulator::known(b.value()).data_ptr<T>() : nullptr;"),
        ("p->data_ptr<float>();", "p->data_ptr<float>();"),
        ("xs[i + 1].packed_accessor32<T, 2>();", "::harness_emulator::known(xs[i + 1]).packed_accessor32<T, 2>();"),
    ],
)
def test_a_checked_build_learns_which_memory_a_kernel_is_given(text: str, expected: str) -> None:
    assert rewrite(text, checked=True) == expected
    assert rewrite(text) == text
