"""Whose a range, an operator or a kernel is, by name; and what a worker may say."""

import json
import math
import subprocess
from types import SimpleNamespace

import pytest
from device_code import build_library

from harness.builder import symbols
from harness.builder.cache import DEVICE_CODE, digest_code
from harness.builder.symbols import list_functions, plain_signature
from harness.domain import BuildRequest, CandidateFailure, LaunchedKernels
from harness.evaluation.integrity.attribution import (
    CustomKernels,
    Profile,
    attribute_replayed,
    classify_kernel,
    classify_range,
    confirm_recorded_code,
    find_owners,
    list_custom_kernels,
    name_kernel,
    parse_profile,
    share_work,
)
from harness.evaluation.integrity.program_kernels import ProgramKernels
from harness.evaluation.results import ReplayedKernels, StepResult
from harness.sandbox.gpu.recorded_code import RecordedFunction

ANSWER = {"kind": "profiled", "total_us": 10.0, "host": [["aten::add", 4.0]], "kernels": [], "libraries": []}


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("own::add", "custom"),
        ("aten::add", "torch"),
        ("aten::_softmax", "torch"),
        ("aten::mm", "library"),
        ("aten::addmm", "library"),
        ("aten::mkldnn_convolution", "library"),
        ("mkldnn::_linear_pointwise", "library"),
        ("aten::_fft_r2c", "library"),
        ("Torch-Compiled Region: 0/0", "torch"),
        ("harness::call", "other"),
        ("some::operator", "other"),
    ],
)
def test_a_range_on_the_cpu_belongs_to_somebody(name, owner):
    assert classify_range(name, CustomKernels(names=())) == owner


@pytest.mark.parametrize(
    ("launcher", "kernel", "owner"),
    [
        ("own::forward", "void softmax_kernel<float, 4>(float const*, float*, int)", "custom"),
        ("own::forward", "(anonymous namespace)::softmax_kernel(float*)", "custom"),
        ("", "ns::softmax_kernel(float*)", "custom"),
        ("own::forward", "made_by_a_macro(float*)", "custom"),
        ("", "compiled_when_it_runs", "custom"),
        ("", "of_a_library_that_nobody_knows", "other"),
        ("own::forward", "void vector_fft<512u, EPT<4u>>(kernel_arguments_t)", "library"),
        ("own::forward", "my_gemm(float*, float*)", "custom"),
        ("aten::mm", "my_gemm(float*, float*)", "library"),
        ("own::forward", "void at::native::elementwise_kernel<4, at::native::CUDAFunctor_add<float> >()", "torch"),
        ("aten::add", "void at::native::elementwise_kernel<4, at::native::CUDAFunctor_add<float> >()", "torch"),
        ("aten::_softmax", "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>()", "torch"),
        ("", "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>()", "torch"),
        ("aten::mm", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", "library"),
        ("own::forward", "ampere_sgemm_128x64_nn", "library"),
        ("own::forward", "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(cutlass::Params)", "library"),
        ("aten::cudnn_convolution", "sm80_xmma_fprop_implicit_gemm_tf32f32_nhwckrsc_nchw", "library"),
        ("aten::convolution", "void cudnn::ops::nchwToNhwcKernel<float, float>()", "library"),
        ("own::forward", "void cub::DeviceReduceKernel<cub::Policy>()", "library"),
        ("aten::sum", "void at_cuda_detail::cub::DeviceReduceKernel<at_cuda_detail::cub::Policy>()", "torch"),
        ("Torch-Compiled Region: 0/0", "triton_poi_fused_add_0", "torch"),
        ("", "triton_red_fused_sum_0", "torch"),
        ("aten::copy_", "Memcpy DtoD (Device -> Device)", "torch"),
        ("aten::zero_", "Memset (Device)", "torch"),
    ],
)  # fmt: skip
def test_a_kernel_on_the_gpu_belongs_to_somebody(launcher, kernel, owner):
    custom = CustomKernels(names=("softmax_kernel", "my_gemm"), words=frozenset({"compiled_when_it_runs"}))
    assert classify_kernel(launcher, kernel, custom) == owner


@pytest.mark.parametrize(
    ("launcher", "kernel", "owner"),
    [
        ("## Call CompiledFxGraph fkq ##", "triton_poi_fused_add_0", "custom"),
        ("", "triton_red_fused_sum_0", "custom"),
        ("aten::mm", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", "library"),
        ("aten::add", "void at::native::elementwise_kernel<4, at::native::CUDAFunctor_add<float> >()", "torch"),
        ("Torch-Compiled Region: 0/0", "Memset (Device)", "torch"),
    ],
)  # fmt: skip
def test_kernels_that_torch_generates_are_own_where_no_kernel_is_written(launcher, kernel, owner):
    assert classify_kernel(launcher, kernel, CustomKernels(names=(), generated=True)) == owner


def test_compiled_cpu_graph_is_custom_code_and_its_guards_are_not():
    generated, written = CustomKernels(names=(), generated=True), CustomKernels(names=())
    assert classify_range("## Call CompiledFxGraph fkq ##", generated) == "custom"
    assert classify_range("## Call CompiledFxGraph fkq ##", written) == "torch"
    assert classify_range("TorchDynamo Cache Lookup", generated) == "torch"


TORCHS = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int, Functor)"
NAMED_LIKE_IT = "at::native::vectorized_elementwise_kernel(float const*, float const*, float*, long)"


@pytest.mark.parametrize(
    ("kernel", "owner"),
    [(TORCHS, "torch"), (NAMED_LIKE_IT, "custom"), ("at::native::vectorized_elementwise_kernel(int)", "torch")],
)
def test_kernel_named_like_torch_is_custom_only_if_the_library_defines_it(kernel, owner):
    functions = frozenset(map(plain_signature, (NAMED_LIKE_IT, TORCHS)))
    custom = CustomKernels(names=("vectorized_elementwise_kernel",), functions=functions)
    assert classify_kernel("", kernel, custom) == owner


def test_a_kernel_with_the_name_of_a_vendors_is_the_librarys():
    custom = CustomKernels(names=("ampere_sgemm_128x64_nn",), functions=frozenset({"ampere_sgemm_128x64_nn"}))
    assert classify_kernel("", "ampere_sgemm_128x64_nn", custom) == "library"


def test_generated_kernel_with_a_vendor_like_name_is_custom_by_its_prefix():
    custom = CustomKernels(names=("kernel_cutlass_add_kernel_*",))
    assert classify_kernel("", "kernel_cutlass_add_kernel_tensorptrf32generico1024_0", custom) == "custom"
    assert classify_kernel("", "kernel_cutlass_gemm_tensorptrf32generico1024_0", custom) == "library"


def test_the_functions_of_a_library_are_listed_with_their_parameters(tmp_path):
    source = "namespace a { template <class T> void f(T*, long) {} template void f<float>(float*, long); } void g() {}"
    (tmp_path / "f.cpp").write_text(source)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", tmp_path / "f.so", tmp_path / "f.cpp"], check=True)
    assert {"a::f<float>(float*,long)", "g()"} <= list_functions(str(tmp_path / "f.so"))
    assert list_functions(str(tmp_path / "f.cpp")) == frozenset()


def test_the_plain_name_of_a_kernel_is_found_in_a_demangled_one():
    assert name_kernel("void a::b::scale<float, (int)4>(float const*, float*, int)") == "scale"
    assert name_kernel("scale(float*)") == "scale"
    assert name_kernel("scale") == "scale"


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void scale(float* x) {}",
        'extern "C" __global__ void scale (float* x) {}',
        "template <typename T>\n__global__ void\nscale(T* x) {}",
        "__global__ void __launch_bounds__(256, 2) scale(float* x) {}",
        "static __global__ __launch_bounds__(kThreads * (2 + 1)) void scale(float* x) {}",
        "__global__ __cluster_dims__(2, 1, 1) void scale(float* x);\n// __global__ void other(float*)",
        "/* __global__ void other(int) */ __global__ void scale(float* x) {}",
    ],
)
def test_kernels_are_named_by_the_sources(source):
    request = BuildRequest(name="x", cuda_sources=(source,), functions=(("launch", ""),))
    assert list_custom_kernels([request]) == ("scale",)


def test_without_kernels_the_bound_functions_are_named():
    inline = BuildRequest(name="x", cpp_sources=("int f();",), functions=(("first", ""), ("second", "")))
    source = 'PYBIND11_MODULE(x, m) { m.def("third", &third); }\nTORCH_LIBRARY(y, lib) { }'
    files = BuildRequest(name="y", files=(("y.cpp", source),))
    assert list_custom_kernels([inline, files]) == ("first", "second", "third")


def make_profile(host=(), kernels=(), libraries=(), total_us=100.0):
    return Profile(total_us=total_us, host=tuple(host), kernels=tuple(kernels), libraries=tuple(libraries))


def shares(profile, custom=()):
    work = share_work(profile, CustomKernels(names=custom))
    return [round(share, 6) for share in (work.custom, work.torch, work.library, work.other)]


def test_unattributed_time_is_other():
    host = [("own::f", 50.0), ("aten::add", 20.0), ("aten::mm", 10.0), ("harness::call", 5.0)]
    assert shares(make_profile(host)) == [0.5, 0.2, 0.1, 0.2]


def test_gpu_kernels_are_counted_by_name_and_cpu_has_none():
    kernels = [
        ("own::f", "mine(float*)", 20.0), ("own::g", "mine(float*)", 5.0), ("own::f", "Memset (Device)", 1.0),
        ("aten::mm", "nvjet_x", 50.0),
    ]  # fmt: skip
    work = share_work(make_profile(kernels=kernels), CustomKernels(names=("mine", "never_launched")))
    assert work.launched == LaunchedKernels(custom=1, total=3, custom_us=25.0, total_us=76.0)
    assert work.parts == (("nvjet_x", 50.0), ("mine(float*)", 25.0), ("Memset (Device)", 1.0))
    assert share_work(make_profile([("own::f", 50.0)]), CustomKernels(names=("f",))).launched is None


def test_on_a_gpu_only_kernels_count_and_the_rest_is_other():
    kernels = [("own::f", "mine(float*)", 25.0), ("aten::mm", "nvjet_x", 50.0)]
    assert shares(make_profile([("own::f", 90.0)], kernels), ["mine"]) == [0.25, 0.0, 0.5, 0.25]


def test_kernels_that_overlap_are_shares_of_their_own_sum():
    kernels = [("own::f", "mine(float*)", 150.0), ("aten::add", "at::native::k()", 50.0)]
    assert shares(make_profile((), kernels), ["mine"]) == [0.75, 0.25, 0.0, 0.0]


def test_the_time_outside_torch_belongs_to_a_library_of_its_own():
    assert shares(make_profile([("aten::empty", 10.0)], libraries=["/tmp/custom.so"])) == [0.9, 0.1, 0.0, 0.0]


def test_a_profile_without_time_is_all_other():
    assert shares(make_profile(total_us=0.0)) == [0.0, 0.0, 0.0, 1.0]


def test_a_whole_answer_is_read():
    assert parse_profile(ANSWER).host == (("aten::add", 4.0),)


@pytest.mark.parametrize(
    "change",
    [
        {"total_us": None},
        {"total_us": -1.0},
        {"total_us": math.nan},
        {"total_us": 1e300},
        {"total_us": True},
        {"host": None},
        {"host": [["aten::add"]]},
        {"host": [[1, 2.0]]},
        {"host": [["aten::add", "x"]]},
        {"host": [["aten::add", 1.0]] * 2000},
        {"kernels": [["one name", 1.0]]},
        {"libraries": "all"},
        {"libraries": [1]},
    ],
)
def test_an_answer_that_our_worker_would_not_give_is_suspect(change):
    with pytest.raises(CandidateFailure) as failure:
        parse_profile(ANSWER | change)
    assert failure.value.outcome == "suspect"


BUILT, UNKNOWN = b"\x7fELF of a build", b"\x7fELF of anybody"


@pytest.mark.parametrize(
    ("function", "path", "image", "owner"),
    [
        ("_Z5scalePff", "", UNKNOWN, "custom"),
        ("_Z5scalePff", "/usr/lib/libcublasLt.so", b"", "torch"),
        ("trsm_ln_up_kernel", "/usr/lib/libcublas.so", b"", "torch"),
        ("_ZN2at6native18elementwise_kernelEi", "", BUILT, "torch"),
        ("ampere_sgemm_128x64_tn", "", UNKNOWN, "library"),
        ("_ZN3cub12ReduceKernelIfEEvPT_", "", BUILT, "custom"),
        ("_ZN3cub12ReduceKernelIfEEvPT_", "", UNKNOWN, "library"),
        ("softmax_rows", "", UNKNOWN, "custom"),
        ("unknown", "", UNKNOWN, "other"),
        ("my_gemm", "", BUILT, "custom"),
        ("my_gemm", "", UNKNOWN, "library"),
        ("triton_poi_fused_add_0", "", UNKNOWN, "torch"),
        ("triton_", "", UNKNOWN, "torch"),
        ("triton_softmax", "", UNKNOWN, "torch"),
        ("kernel_cutlass_gemm_tensorptr", "", UNKNOWN, "custom"),
    ],
)
def test_whose_a_recorded_function_is(tmp_path, function, path, image, owner):
    (tmp_path / DEVICE_CODE).write_text(digest_code(BUILT))
    custom = CustomKernels(
        names=("scale", "my_gemm", "triton_poi_fused_add_0", "triton_", "triton_softmax", "kernel_cutlass_gemm_*"),
        words=frozenset({"softmax_rows", "trsm_ln_up_kernel"}),
        libraries=(str(build_library(tmp_path, "library.so", BUILT)),),
    )
    functions = [RecordedFunction("_Z5otherv", "", UNKNOWN), RecordedFunction(function, path, image)]
    other, found = find_owners(functions, custom)
    assert (other.name, other.owner) == ("other()", "other")
    assert found.owner == owner


KERNEL = "@triton.jit\ndef my_gemm(x):\n    tl.store(x, 1)\n"
SAYS = json.dumps({"functions": [{"text": KERNEL.partition("\n")[2]}]})


@pytest.mark.parametrize(
    ("name", "code", "said", "owned"),
    [
        ("my_gemm", UNKNOWN, SAYS, ("custom", True)),
        ("of_any_name", UNKNOWN, SAYS, ("custom", True)),
        ("my_gemm", b"", SAYS, ("custom", False)),
        ("my_gemm", UNKNOWN, SAYS.replace("1", "2"), ("library", True)),
        ("in_a_word", UNKNOWN, SAYS.replace("1", "2"), ("custom", False)),
        ("in_a_word", UNKNOWN, "", ("custom", False)),
    ],
    ids=["same", "named otherwise", "not repeated", "of another text", "of no kernel's name", "not described"],
)
def test_only_names_tell_whose_code_is_that_the_program_does_not_give(name, code, said, owned):
    program = ProgramKernels(KERNEL, lambda texts: [code for _ in texts])
    custom = CustomKernels(names=("my_gemm",), words=frozenset({"in_a_word"}), program=program)
    (found,) = find_owners([RecordedFunction(name, "", UNKNOWN, said)], custom)
    assert (found.owner, found.is_verified) == owned


# Each parameter is a pointer to a function of two of the one before.
DOUBLING = "_Z1fPFviiE" + "".join(f"PFvS{at}_S{at}_E" for at in "02468ACEGIKMOQS")


def test_a_name_that_demangles_to_megabytes_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(symbols, "MOST_BYTES", 1 << 20)
    names = ["_Z5scalePff", DOUBLING, "softmax_rows"]
    assert symbols.demangle(names) == names
    assert symbols.demangle(names[::2]) == ["scale(float*, float)", "softmax_rows"]


def test_the_list_of_a_library_with_such_a_name_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(symbols, "MOST_BYTES", 1 << 20)
    (tmp_path / "f.s").write_text(f".text\n.globl {DOUBLING}\n.type {DOUBLING},@function\n{DOUBLING}:\n ret\n")
    subprocess.run(["cc", "-c", tmp_path / "f.s", "-o", tmp_path / "f.o"], check=True)
    (found,) = list_functions(str(tmp_path / "f.o"))
    assert found.startswith("f(void(*)(int,int),")
    assert len(found) < 1 << 20


CUSTOM = CustomKernels(names=("scale",))


def test_the_device_time_of_a_recorded_call_is_shared():
    def attribute(rows, without_custom="changed", *, has_kernel=True, custom=CUSTOM, required=False):
        problem = SimpleNamespace(requires_kernel=required)
        reference = SimpleNamespace(loaded=SimpleNamespace(problem=problem))
        replayed = ReplayedKernels(rows=tuple(rows), without_custom=without_custom)
        return attribute_replayed(replayed, reference, custom, has_kernel=has_kernel)

    rows = [("scale(float*, float)", "custom", 60.0), ("sgemm", "library", 30.0), ("Memcpy, Memset", "torch", 10.0)]
    work = attribute(rows).work
    assert (work.custom, work.library, work.torch) == pytest.approx((0.6, 0.3, 0.1))
    assert (work.without_custom, work.custom_kernels) == ("changed", ("scale",))
    assert work.parts[0] == ("scale(float*, float)", 60.0)
    decoy = attribute(rows, "unchanged", required=True)
    assert (decoy.outcome, decoy.findings[0].check) == ("rejected", "decoy_kernel")
    none = attribute(rows[1:], "unchanged", has_kernel=False, required=True)
    assert (none.outcome, none.findings[0].check, none.work.custom) == ("rejected", "no_own_kernel", 0)
    compiled = attribute([("triton_poi_fused_add_0", "custom", 5.0)], custom=CustomKernels(names=(), generated=True))
    assert (compiled.work.custom, compiled.work.custom_kernels) == (1.0, ("triton_poi_fused_add_0",))
    unknown = attribute([], "failed")
    assert (unknown.work.custom, unknown.work.without_custom) == (0.0, "failed")


@pytest.mark.parametrize(
    ("others_us", "measured_us", "share"),
    [
        (40.0, 100.0, 0.6),
        (40.0, None, 0.6),
        (40.0, 50.0, 0.2),  # they took 60 us only where parts were timed
        (50.0, 50.0, 0.0),
        (80.0, 50.0, 0.0),
        (5.0, 100.0, 0.6),
        (None, 100.0, 0.6),
        (None, 50.0, 0.2),
        (0.0, 50.0, 0.2),
        (80.0, 100.0, 0.2),  # the time of each was understated
        (5.0, 90.0, 0.6),  # events between kernels take time
    ],
)
def test_custom_kernels_have_no_larger_share_than_the_measured_time_leaves(others_us, measured_us, share):
    rows = (("scale", "custom", 45.0), ("shift", "custom", 15.0), ("sgemm", "library", 40.0))
    replayed = ReplayedKernels(rows=rows, without_custom="changed", others_us=others_us, measured_us=measured_us)
    reference = SimpleNamespace(loaded=SimpleNamespace(problem=SimpleNamespace(requires_kernel=True)))
    work = attribute_replayed(replayed, reference, CUSTOM, has_kernel=True).work
    assert work.custom == pytest.approx(share)
    assert work.library == pytest.approx(1 - share)


@pytest.mark.parametrize(
    ("functions", "outcome", "check"),
    [
        (None, None, "unverified_share"),
        ([RecordedFunction("_Z5scalePff", "", UNKNOWN)], None, "unverified_share"),
        ([RecordedFunction("_Z5scalePff", "/usr/lib/libcublas.so", b"")], "rejected", "unused_kernel"),
        ([], "rejected", "unused_kernel"),
    ],
)
def test_a_profile_counts_only_if_the_recording_launches_code_of_the_candidate(functions, outcome, check):
    reference = SimpleNamespace(loaded=SimpleNamespace(problem=SimpleNamespace(requires_kernel=True)))
    work = share_work(make_profile(kernels=[("own::f", "scale(float*)", 5.0)]), CUSTOM)
    found = confirm_recorded_code(StepResult(work=work), functions, reference, CUSTOM)
    assert (found.outcome, [one.check for one in found.findings]) == (outcome, [check])
    assert found.work.custom == (0.0 if outcome else work.custom)
