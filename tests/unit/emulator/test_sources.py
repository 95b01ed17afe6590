"""Requests as sources: what is not covered is named by its line, and told from what a GPU's compiler refuses too."""

import re
from pathlib import Path

import pytest

import harness.emulator
from harness.domain import BuildRequest, UsageError
from harness.emulator import Emulation
from harness.emulator.sources import (
    begins_with_syntax_error,
    drop_cuda_libraries,
    explain_failure,
    find_declared_names,
    find_unknown_name,
    prepare_sources,
    read_cuda_flags,
    write_target,
)
from harness.hardware.gpus import GPU_MODELS, GpuModel, find_gpu_model

EMULATION = Emulation(target=find_gpu_model("A100"))


def test_both_files_of_load_inline_are_compiled_apart() -> None:
    request = BuildRequest(
        name="a", cpp_sources=("void f();",), cuda_sources=("__global__ void k() {}",), functions=(("f", ""),)
    )
    prepared = prepare_sources(request, EMULATION)
    assert [(unit.path, unit.is_device) for unit in prepared.units] == [("main.cpp", False), ("cuda.cpp", True)]
    assert '#line 1 "cuda.cu"\n' in (prepared.units[1].text or "")


@pytest.mark.parametrize(("text", "needed"), [("PYBIND11_MODULE(a, m) {}", True), ("torch::Tensor f();", False)])
def test_python_is_included_only_where_it_is_named(text: str, needed: bool) -> None:
    request = BuildRequest(name="a", cuda_sources=(f"#include <torch/extension.h>\n{text}",))
    device = prepare_sources(request, EMULATION).units[1]
    assert ("-DHARNESS_NEEDS_PYTHON" in device.flags) == needed and device.may_need_more


def test_torchs_flags_come_before_those_that_undo_them() -> None:
    request = BuildRequest(name="a", cuda_sources=("int x;",), extra_cuda_cflags=("-U__CUDA_NO_HALF_OPERATORS__",))
    flags = prepare_sources(request, EMULATION).units[1].flags
    assert flags.index("-D__CUDA_NO_HALF_OPERATORS__") < flags.index("-U__CUDA_NO_HALF_OPERATORS__")


def test_files_of_load_keep_their_names_and_headers_are_no_units() -> None:
    request = BuildRequest(name="a", files=(("b.cpp", "int x;"), ("k.cu", '#include "h.cuh"'), ("h.cuh", "int y;")))
    prepared = prepare_sources(request, EMULATION)
    assert [unit.path for unit in prepared.units] == ["sources/b.cpp", "sources/k.cu.cpp"]
    assert "outside.h" not in (prepared.units[1].text or "")


@pytest.mark.parametrize(
    ("flag", "refused"),
    [("-O3", True), ("-O3 --extended-lambda", False), ("-expt-extended-lambda", False)],
)
def test_lambdas_for_the_device_need_nvccs_flag(flag: str, refused: bool) -> None:
    text = "void f(float* p) { run([=] __device__(int i) { p[i] = 1; }); }"
    prepared = prepare_sources(BuildRequest(name="a", cuda_sources=(text,), extra_cuda_cflags=(flag,)), EMULATION)
    assert ("requires --extended-lambda" in (prepared.units[1].text or "")) == refused


@pytest.mark.parametrize("header", ["cutlass/gemm.h", "cuda/ptx", "cute/tensor.hpp", "cusparseLt.h"])
def test_a_header_that_is_not_here_is_named(header: str) -> None:
    request = BuildRequest(name="a", cuda_sources=(f"\n#include <{header}>\n",))
    assert f"cuda.cu:2: not covered: the header {header}" in prepare_sources(request, EMULATION).uncovered


def test_only_flags_with_a_meaning_for_the_host_are_kept() -> None:
    flags = (
        "-O3",
        "--use_fast_math",
        "-DN=4",
        "-U",
        "M",
        "-std=c++17",
        "-gencode=arch=compute_80,code=sm_80",
        "-Xcompiler -fPIC",
    )
    assert read_cuda_flags(flags) == ("-DN=4", "-UM", "-std=c++17")


def test_libraries_of_cuda_are_not_linked() -> None:
    flags = (
        "-L/usr/local/cuda/lib64 -lcublas",
        "-lcublasLt",
        "-lcudart",
        "-l cuda",
        "-lc10_cuda",
        "-lm",
        "-lculture",
        "",
    )
    assert drop_cuda_libraries(flags) == ("-L/usr/local/cuda/lib64", "-lm", "-lculture")


@pytest.mark.parametrize(
    ("error", "is_uncovered"),
    [
        ("'cudaGraphLaunch' was not declared in this scope", True),
        ("'__nv_cvt_float_to_fp8' was not declared in this scope", True),
        ("'DeviceSegmentedSort' is not a member of 'cub'", True),
        ("'BlockShuffle' in namespace 'cub' does not name a template type", True),
        ("'Wrong' in namespace 'mine' does not name a type", False),
        ("'SumWide' is not a member of 'cub::BlockReduce<float, 64>'", True),
        ("'C10_CUDA_KERNEL_LAUNCH_CHECK' was not declared in this scope", False),
        ("'cudnnHandle_t' was not declared in this scope", True),
        ("'cudaMalloc' was not declared in this scope", False),
        ("'hexp' was not declared in this scope", False),
        ("'__low2half' was not declared in this scope", False),
        ("'__hgt2_mask' was not declared in this scope", False),
        ("'__shfl_down' was not declared in this scope", False),
        ("'FLT_MAX' was not declared in this scope", False),
        ("'my_function' was not declared in this scope", False),
        ("'struct cudaDeviceProp' has no member named 'hostNumaId'", True),
        ("'class harness_emulator::CUDAStream' has no member named 'native_handle'", True),
        ("'struct Mine' has no member named 'first'", False),
        ("no matching function for call to 'cub::BlockScan<V<2>, 128>::ExclusiveSum(float [4], Prefix&)'", True),
        ("no matching function for call to 'Mine<cub::Sum>::add(float)'", False),
        ("no matching function for call to 'add(float, cub::Sum)'", False),
        ("no matching function for call to 'reduce_by_key(const thrust::device_t&, float*&)'", True),
        ("no matching function for call to 'transform(float*&)'", False),
        ("'at::native::cuda_utils' has not been declared", True),
        ("'gpu_kernel' is not a member of 'at::native'", True),
        ("'mine::part' has not been declared", False),
    ],
)
def test_unknown_name_is_an_emulator_error_only_if_cuda_may_have_it(error: str, is_uncovered: bool) -> None:
    source = "void run(float* x) { thrust::reduce_by_key(thrust::device, x); transform(x); }"
    prepared = prepare_sources(BuildRequest(name="a", cuda_sources=(source,)), EMULATION)
    log, found = explain_failure(f"cuda.cu:3:5: error: {error}\n", prepared)
    assert found == is_uncovered
    assert ("cuda.cu:3: not covered: " in log) == is_uncovered


def test_a_name_that_macros_paste_together_is_declared() -> None:
    text = """
    #define NAME(prefix, suffix) prefix##half##suffix
    #define MATH(Name) inline T h##Name(T a); inline T NAME(__##Name, 2)(T a);
    MATH(exp)
    MATH(
      log)
    """
    names = find_declared_names(text)
    assert {"hexp", "hlog", "__exphalf2", "__loghalf2"} <= names
    assert "hsin" not in names


def test_warnings_are_left_out_of_a_failures_log() -> None:
    log = (
        "a.cu:1:2: warning: unused\n    1 | int x;\n      |     ^\na.cu:2:3: error: wrong\n    2 | int y\n"
        "a.cu: In function 'f':\na.cu:4:1: note: here\n"
    )
    prepared = prepare_sources(BuildRequest(name="a", cuda_sources=("int x;",)), EMULATION)
    left, _ = explain_failure(log, prepared)
    assert left == "".join(log.splitlines(keepends=True)[3:])


@pytest.mark.parametrize("target", GPU_MODELS, ids=lambda target: target.name)
def test_each_target_can_be_written_for_the_runtime(target: GpuModel) -> None:
    assert find_gpu_model(target.name.lower().replace(" ", "")) is target
    text = write_target(Emulation(target=target))
    assert text.rstrip().endswith("};") and f'"{target.name}"' in text


def test_an_unknown_gpu_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean H100"):
        find_gpu_model("H1000")


def find_name(text: str, error: str, **more: tuple) -> str | None:
    prepared = prepare_sources(BuildRequest(name="a", cuda_sources=(text,), **more), EMULATION)
    return find_unknown_name(f"In function:\n{error}\ncuda.cu:9:1: error: expected ';'\n", prepared)


@pytest.mark.parametrize(
    ("text", "error", "name"),
    [
        ("int a;\nint b = c;", "cuda.cu:2:9: error: \u2018c\u2019 was not declared in this scope", "c"),
        ("\nint b = at::c();", "cuda.cu:2:9: error: 'c' is not a member of 'at'; did you mean 'd'?", "c"),
        ("#include <vector>\nint b = c;", "cuda.cu:2:9: error: 'c' was not declared in this scope", "c"),
        ("int b = c;\nint d = c;", "cuda.cu:2:9: error: 'c' was not declared in this scope", None),
        ("// c\nint b = c;", "cuda.cu:2:9: error: 'c' was not declared in this scope", None),
        ("#if N\n#endif\nint b = c;", "cuda.cu:3:9: error: 'c' was not declared in this scope", None),
        ("int b = c;", "torch/all.h:1:9: error: 'c' was not declared in this scope", None),
        ("int b = c;", "cuda.cu:1:9: error: invalid use of incomplete type 'c'", None),
    ],
)
def test_name_is_unknown_if_its_first_use_is_the_first_error(text: str, error: str, name: str | None) -> None:
    assert find_name(text, error) == name


@pytest.mark.parametrize(
    ("error", "is_syntax"),
    [
        ("cuda.cu:2:9: error: expected ';' before 'if'", True),
        ("cuda.cu:9:2: error: expected '}' at end of input", True),
        ("cuda.cu:2:9: error: 'c' was not declared in this scope\ncuda.cu:3:9: error: expected ';' before 'if'", False),
        ("cuda.cu:2:9: error: no match for 'operator+'", False),
        ("Killed", False),
    ],
)
def test_a_first_error_that_expects_something_is_one_of_syntax(error: str, is_syntax: bool) -> None:
    assert begins_with_syntax_error(f"In function:\n{error}\n") == is_syntax


def test_words_of_all_sources_can_be_macros() -> None:
    request = BuildRequest(
        name="a", cuda_sources=("__global__ void k() { FIRST(1) }",), cpp_sources=("SECOND(2)",),
        headers=(("h.cuh", "#define THIRD 3\n"),),
    )  # fmt: skip
    assert {"FIRST", "SECOND", "THIRD"} <= prepare_sources(request, EMULATION).words


def test_a_name_that_another_file_has_too_may_be_declared_there() -> None:
    error = "cuda.cu:1:9: error: 'c' was not declared in this scope"
    assert find_name("int b = c;", error, cpp_sources=("int c;",)) is None
    assert find_name("int b = c;", error, headers=(("h.cuh", "#define C c\n"),)) is None


def test_headers_of_libraries_include_the_half_type_that_they_use():
    """A host source may include them alone."""
    runtime = Path(harness.emulator.__file__).parent / "runtime"
    using = [path for path in runtime.glob("*.h") if re.search(r"\b__half\b", path.read_text())]
    assert runtime / "cublas_v2.h" in using
    assert [path.name for path in using if "#include <cuda_fp16.h>" not in path.read_text()] == []
