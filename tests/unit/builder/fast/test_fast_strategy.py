"""The fast strategy with real compilers: it builds what the plain strategy builds, and where it fails that one
decides."""

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from harness.builder.error_excerpt import shorten_log
from harness.builder.fast.prebuilt_cache import NOT_YET, REQUESTS_BEFORE_PRECOMPILED, PrebuiltCache
from harness.builder.runner import MemoryGate, Runner
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest, HarnessError

CUDA = """
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
__global__ void scale_kernel(const float* x, float* y, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] = x[i] * by; }
}
torch::Tensor scale(torch::Tensor x, double by) {
    TORCH_CHECK(x.is_cuda(), "x must be on a GPU, it is on ", x.device());
    const c10::cuda::CUDAGuard guard(x.device());
    auto y = torch::empty_like(x);
    const int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, by);
    return y;
}
"""
REQUEST = BuildRequest(
    name="scaling",
    cpp_sources=("torch::Tensor scale(torch::Tensor x, double by);",),
    cuda_sources=(CUDA,),
    functions=(("scale", "Scales."),),
)
HOPPER = """
#include <cuda.h>
#include <cstdint>
__global__ void multiply(const uint64_t* operands, float* y) {
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(operands[0]), "l"(operands[1]));
    asm volatile("wgmma.commit_group.sync.aligned;\\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i) { y[threadIdx.x * 4 + i] = d[i]; }
}
__global__ void copy(const __grid_constant__ CUtensorMap map, float* y) {
    __shared__ alignas(128) float tile[1024];
    __shared__ alignas(8) uint64_t barrier;
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
    const auto done = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(done));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        :: "r"(to), "l"(&map), "r"(0), "r"(0), "r"(done) : "memory");
    y[threadIdx.x] = tile[threadIdx.x];
}
torch::Tensor run(torch::Tensor x) {
    multiply<<<1, 128>>>(static_cast<const uint64_t*>(x.data_ptr()), x.data_ptr<float>());
    copy<<<1, 128>>>(CUtensorMap{}, x.data_ptr<float>());
    return x;
}
"""
HOST = BuildRequest(
    name="host_code",
    cpp_sources=(
        "#include <vector>\n"
        "template <typename T> T twice(T v) { return v + v; }\n"
        "torch::Tensor loop(torch::Tensor x) {\n"
        "  TORCH_CHECK(x.dim() == 2, \"x must be a matrix, it has \", x.dim(), \" dimensions\");\n"
        "  auto y = torch::empty_like(x); auto a = x.accessor<float, 2>(); auto b = y.accessor<float, 2>();\n"
        "  for (int64_t i = 0; i < x.size(0); ++i) for (int64_t j = 0; j < x.size(1); ++j) b[i][j] = twice(a[i][j]);\n"
        "  return y; }\n"
        "torch::Tensor dispatched(torch::Tensor x) { auto y = at::zeros_like(x);\n"
        "  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), \"dispatched\", [&] {\n"
        "    auto* p = x.data_ptr<scalar_t>(); auto* q = y.data_ptr<scalar_t>();\n"
        "    for (int64_t i = 0; i < x.numel(); ++i) q[i] = p[i] * static_cast<scalar_t>(3); }); return y; }\n"
        "std::vector<torch::Tensor> several(const at::Tensor& x, c10::optional<at::Tensor> bias, bool flag) {\n"
        "  return {x.sum(0), bias.has_value() ? x + *bias : x - 1, x.to(flag ? torch::kInt : torch::kDouble)}; }\n"
        "double number(std::vector<int64_t> v, double by = 2.0) { double s = 0;\n"
        " for (auto i : v) s += by * i; return s; }\n"
        "std::tuple<torch::Tensor, int64_t> pair(torch::Tensor x) {\n"
        " torch::NoGradGuard g; return {x.softmax(-1), x.numel()}; }\n",
    ),
    functions=tuple((name, name) for name in ("loop", "dispatched", "several", "number", "pair")),
)  # fmt: skip
CALLS = """
import importlib.util, json, sys
import torch
spec = importlib.util.spec_from_file_location(sys.argv[1], sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
torch.manual_seed(0)
x = torch.randn(5, 7)
found = []
for call in json.loads(sys.argv[3]):
    try:
        value = eval(call, {"m": module, "x": x, "torch": torch})
        values = value if isinstance(value, (list, tuple)) else [value]
        found.append(repr([v.tolist() if torch.is_tensor(v) else v for v in values]))
    except Exception as error:
        found.append(type(error).__name__ + ": " + str(error).partition("Exception raised from")[0])
print(json.dumps(found))
"""
HOST_CALLS = (
    "m.loop(x)", "m.loop(x[0])", "m.loop(x.double())",
    "m.dispatched(x)", "m.dispatched(x.half())", "m.dispatched(x.bfloat16())",
    "m.dispatched(x.int())", "m.several(x, None, True)",
    "m.several(x, x, False)", "m.several(x)", "m.number([1, 2, 3], 0.5)",
    "m.number((1, 2), 2)", "m.number([1.5], 1)", "m.pair(x)", "m.number.__doc__", "m.several.__doc__", "sorted(dir(m))",
)  # fmt: skip
CUDA_CALLS = (
    "m.scale(x, 2.0)", "m.scale(x)", "m.scale(1, 2)", "m.scale(x, 'a')", "m.scale(None, 1)", "m.scale.__doc__",
    "m.scale.__name__", "sorted(dir(m))", "m.__name__",
)  # fmt: skip


def run_nothing(command, *, readable, writable):
    return ["true"]


@pytest.fixture
def idle_runner():
    return Runner(wrap=run_nothing, readable=(), environment=lambda: {}, timeout_s=60.0)


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.parametrize("strategy", ["fast", "plain"])
def test_instructions_of_hopper_alone_are_built(request, strategy):
    """wgmma, and a tensor map that TMA reads."""
    result = request.getfixturevalue(strategy).build(
        BuildRequest(
            name="hopper", cpp_sources=("torch::Tensor run(torch::Tensor x);",), cuda_sources=(HOPPER,),
            functions=(("run", ""),),
        )
    )  # fmt: skip
    assert (result.status, result.strategy) == ("built", strategy), result.reason + result.log[-3000:]


def read_errors(result):
    return [line for line in shorten_log(result.log).splitlines() if ": error" in line]


def call_all(result, name, calls):
    command = [sys.executable, "-c", CALLS, name, result.extension, json.dumps(calls)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.timeout(3600)
def test_a_cuda_candidate_of_both_strategies_answers_alike(fast, plain):
    results = [fast.build(REQUEST), plain.build(REQUEST)]
    assert [(result.status, result.strategy) for result in results] == [("built", "fast"), ("built", "plain")]
    found = [call_all(result, "scaling", CUDA_CALLS) for result in results]
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("precompiled")
def test_host_code_of_both_strategies_gives_the_same_bits(fast, plain):
    results = [fast.build(HOST), plain.build(HOST)]
    assert [(result.status, result.strategy) for result in results] == [("built", "fast"), ("built", "plain")]
    found = [call_all(result, "host_code", HOST_CALLS) for result in results]
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("broken", "words", "strategy"),
    [
        (
            "y[i] = at::nothing_like_it(x[i]) * no_such_factor; }",
            ('has no member "nothing_like_it"', 'identifier "no_such_factor" is undefined'),
            "fast",
        ),
        ("y[i] = x[i] *; }", ("expected an expression",), "fast"),
        ("y[i] = at::Half(x[i]) *; }", ("expected an expression",), "plain"),
        ("y[i] = x[i];", ('expected a "}"',), "fast"),
    ],
    ids=["unknown names", "syntax", "syntax beside torch", "brackets"],
)
def test_compile_error_is_shown_in_the_words_of_the_plain_strategy(fast, plain, broken, words, strategy):
    source = CUDA.replace("y[i] = x[i] * by; }", broken)
    request = replace(REQUEST, cuda_sources=(source,))
    found = fast.build(request)
    assert (found.status, found.strategy) == ("failed", strategy)
    assert [one for one in words if one not in found.log] == []
    if strategy == "fast":  # else these are the plain strategy's words
        expected = plain.build(request)
        assert (expected.status, expected.strategy) == ("failed", "plain")
        # The lines quoted below them differ in what a macro stands for.
        assert read_errors(found) == read_errors(expected) != []


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.timeout(3600)
def test_name_of_a_missing_header_fails_in_the_fast_strategy(fast):
    source = CUDA.replace("#include <c10/cuda/CUDAGuard.h>\n", "")
    assert fast.build(replace(REQUEST, cuda_sources=(source,))).status == "failed"


def test_a_kit_is_made_once(tmp_path):
    made = []
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=None, gate=MemoryGate())
    found = [shelf.find("kind", ["flags"], made.append) for _ in range(3)]
    assert found == made * 3


def test_no_build_waits_for_a_precompiled_header(tmp_path):
    may_end = threading.Event()
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=None, gate=MemoryGate())
    makers = []

    def find():
        return shelf.find_later("kind", ["flags"], lambda work: makers.append(work) or may_end.wait(60))

    assert {find() for _ in range(REQUESTS_BEFORE_PRECOMPILED + 5)} == {NOT_YET}
    assert shelf.take_waited_s() == 0
    may_end.set()
    while (found := find()) == NOT_YET:
        time.sleep(0.01)
    assert [found] == makers


def test_few_builds_precompile_nothing(tmp_path):
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=None, gate=MemoryGate())
    for _ in range(REQUESTS_BEFORE_PRECOMPILED - 1):
        assert shelf.find_precompiled("c++", "-O3") == NOT_YET
    time.sleep(0.1)
    assert not list(tmp_path.glob("*/headers"))


def test_only_what_nvcc_makes_depends_on_nvcc(tmp_path):
    here = probe_toolchain()
    shelves = [PrebuiltCache(tmp_path, one, None, MemoryGate()) for one in (here, replace(here, nvcc_version="1.0"))]
    for kind, count in (("header", 1), ("emulator", 1), ("cuda", 2)):
        assert len({shelf._key(kind, ["flags"]) for shelf in shelves}) == count, kind


def test_all_others_wait_while_a_kit_is_made_and_then_have_it(tmp_path, idle_runner):
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=idle_runner, gate=MemoryGate())
    begun, may_end = threading.Event(), threading.Event()

    def make(work):
        begun.set()
        assert may_end.wait(60)
        (work / "whole").touch()

    with ThreadPoolExecutor(3) as pool:
        maker = pool.submit(shelf.find, "kind", ["flags"], make)
        assert begun.wait(60)
        other_shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=idle_runner, gate=MemoryGate())
        others = [pool.submit(one.find, "kind", ["flags"], make) for one in (shelf, other_shelf)]
        assert not wait(others, timeout=0.5).done
        may_end.set()
        assert {future.result(timeout=60) for future in (maker, *others)} == {maker.result()}
    assert (maker.result() / "whole").exists()


def test_who_waits_for_a_kit_ends_when_builds_are_stopped(tmp_path, idle_runner):
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=idle_runner, gate=MemoryGate())
    begun, may_end = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as pool:
        maker = pool.submit(shelf.find, "kind", ["flags"], lambda work: begun.set() or may_end.wait(60))
        assert begun.wait(60)
        other = pool.submit(shelf.find, "kind", ["flags"], lambda work: None)
        idle_runner.stop()
        with pytest.raises(HarnessError, match="was stopped"):
            other.result(timeout=60)
        may_end.set()
        maker.result(timeout=60)


def test_further_headers_are_precompiled_beside_the_cache(tmp_path):
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=None, gate=MemoryGate())
    other = threading.Event()
    found = shelf.find("kind", ["flags"], lambda work: other.wait(60) or work.rmdir(), beside=other.set)
    assert found.is_dir()


def test_a_kit_that_cannot_be_made_is_not_tried_again(tmp_path):
    tried = []

    def fail(work):
        tried.append(work)
        raise KeyError("AT_FORALL_SCALAR_TYPES")

    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=None, gate=MemoryGate())
    reasons = {shelf.find("kind", ["flags"], fail) for _ in range(3)}
    assert len(tried) == len(reasons) == 1
    assert "KeyError" in reasons.pop()
    assert "AT_FORALL_SCALAR_TYPES" in next(tmp_path.glob("*/unusable.txt")).read_text()


def test_partial_header_cache_of_a_killed_process_is_not_used(tmp_path):
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=None, gate=MemoryGate())

    def die(work):
        (work / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shelf.find("kind", ["flags"], die)
    found = shelf.find("kind", ["flags"], lambda work: (work / "whole").touch())
    assert sorted(path.name for path in found.iterdir()) == ["whole"]


def test_other_flags_have_another_kit(tmp_path):
    shelf = PrebuiltCache(tmp_path, probe_toolchain(), runner=None, gate=MemoryGate())
    found = {shelf.find("kind", [flags], lambda work: None) for flags in ("-O2", "-O3")}
    assert len(found) == 2
