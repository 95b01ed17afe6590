"""Real builds of tiny extensions without any torch header: about a second each."""

import fcntl
import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest, BuildToolError, HarnessError
from harness.domain.build import GOING_ON, LOCKED, PRECOMPILING, RUNNING
from harness.emulator import Emulation
from harness.hardware.gpus import DEFAULT_TARGET, find_gpu_model

pytestmark = pytest.mark.usefixtures("needs_compiler")
TINY = BuildRequest(name="tiny", cpp_sources=('extern "C" int answer() { return 42; }\n',), no_implicit_headers=True)
BROKEN = replace(TINY, cpp_sources=("int answer() { return missing; }\n",))


@pytest.fixture(scope="session")
def toolchain():
    return probe_toolchain()


@pytest.fixture
def make_builder(tmp_path, toolchain):
    """A builder without isolation whose compiler runs are counted in a file."""
    counter = tmp_path / "runs"
    counter.touch()

    def wrap(command, *, readable, writable):
        return ["/bin/sh", "-c", f'echo run >> {counter}; exec "$@"', "sh", *command]

    def make(**changes):
        options = {"cache": tmp_path / "cache", "toolchain": toolchain, "wrap": wrap, "timeout_s": 60.0}
        builder = Builder(**(options | {"environment": lambda: dict(os.environ)} | changes))
        builder.count_runs = lambda: len(counter.read_text().splitlines())
        return builder

    return make


def test_a_request_is_built_once_and_then_taken_from_the_cache(make_builder):
    builder = make_builder()
    first, second = builder.build(TINY), builder.build(TINY)
    assert (first.status, second.status) == ("built", "cached")
    assert first.extension == second.extension
    assert builder.count_runs() == 1


def test_a_broken_request_is_not_compiled_again_and_keeps_its_log(make_builder):
    builder = make_builder()
    first, second = builder.build(BROKEN), builder.build(BROKEN)
    assert (first.status, second.status) == ("failed", "failed")
    assert "main.cpp" in first.log
    assert "missing" in first.log
    assert second.log == first.log
    assert builder.count_runs() == 2  # and an empty file


def test_build_names_why_it_was_not_fast_also_if_cached(make_builder):
    builder = make_builder()
    for request, status in ((TINY, "built"), (BROKEN, "failed")):
        results = [builder.build(request), builder.build(request)]
        assert [result.status for result in results] == [status, "cached" if status == "built" else status]
        assert {(result.strategy, result.reason) for result in results} == {
            ("plain", "it asks for no_implicit_headers")
        }
    assert builder.counts["strategy plain"] == builder.counts["reason it asks for no_implicit_headers"] == 2


def test_each_extension_is_counted_once_by_all_builders(make_builder):
    builder, other = make_builder(), make_builder()
    for request in (TINY, BROKEN, TINY, BROKEN):
        builder.build(request)
    assert (builder.counts["built"], builder.counts["failed"], builder.counts.get("cached")) == (1, 1, None)
    other.leave_uncounted([builder.key(TINY)])
    for request in (TINY, BROKEN):
        other.build(request)
    assert (other.counts.get("cached"), other.counts["failed"]) == (None, 1)


def test_running_builds_and_waits_for_other_processes_are_counted(make_builder, tmp_path):
    seen = []
    builder = make_builder(on_count=lambda: seen.append({name: builder.counts.get(name, 0) for name in GOING_ON}))
    (tmp_path / "cache" / "locks").mkdir(parents=True)
    with (tmp_path / "cache" / "locks" / builder.key(TINY)).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=builder.build, args=(TINY,))
        thread.start()
        while not seen:
            time.sleep(0.01)
        assert seen == [{LOCKED: 1, RUNNING: 0, PRECOMPILING: 0}]
    thread.join()
    assert {LOCKED: 0, RUNNING: 1, PRECOMPILING: 0} in seen
    assert seen[-1] == dict.fromkeys(GOING_ON, 0)


def test_identical_requests_of_two_threads_are_built_once(make_builder):
    builder = make_builder()
    results = []
    threads = [threading.Thread(target=lambda: results.append(builder.build(TINY))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.status for result in results) == ["built", "cached"]
    assert builder.count_runs() == 1


PROGRAM = """
import itertools
import os
from pathlib import Path
from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest
def wrap(command, *, readable, writable):
    return ["/bin/sh", "-c", f'echo run >> {os.getcwd()}/runs; exec "$@"', "sh", *command]
builder = Builder(cache=Path("cache"), toolchain=probe_toolchain(), wrap=wrap, environment=lambda: dict(os.environ))
source = 'extern "C" int answer() { return 43; }'
print(builder.build(BuildRequest(name="tiny", cpp_sources=(source,), no_implicit_headers=True)).status)
"""


@pytest.mark.slow
def test_identical_requests_of_two_processes_are_built_once(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", PROGRAM]
    running = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    statuses = sorted(process.communicate(timeout=120)[0].strip() for process in running)
    assert statuses == ["built", "cached"]
    assert (tmp_path / "runs").read_text() == "run\n"


def test_another_flag_is_another_build(make_builder):
    builder = make_builder()
    keys = {builder.key(TINY), builder.key(replace(TINY, extra_cflags=("-O1",))), builder.key(BROKEN)}
    assert len(keys) == 3


def test_another_compiler_is_another_build(make_builder, toolchain):
    other = replace(toolchain, compiler_version="c++ (another) 99.0")
    assert make_builder().key(TINY) != make_builder(toolchain=other).key(TINY)


def test_nvcc_is_part_of_the_key_of_its_own_builds_only(make_builder, toolchain):
    other = make_builder(toolchain=replace(toolchain, nvcc_version="1.0.0", cuda_home="/another", architecture="10.0"))
    emulation = Emulation(target=find_gpu_model(DEFAULT_TARGET))
    cuda = replace(TINY, cuda_sources=("__global__ void k() {}",))
    assert make_builder().key(TINY) == other.key(TINY)
    assert make_builder().key(cuda) != other.key(cuda)
    emulated = [make_builder(toolchain=one.toolchain, emulate=emulation).key(cuda) for one in (make_builder(), other)]
    assert emulated[0] == emulated[1]


def test_a_compiler_is_the_same_behind_a_link(tmp_path, monkeypatch):
    program = shutil.which("c++") or pytest.skip("needs a C++ compiler; there is none here")
    (tmp_path / "c++").symlink_to(program)
    before = probe_toolchain()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert probe_toolchain().compiler == before.compiler


def find_processes_naming(folder):
    """The command lines of running processes that name something in a folder; our own do not."""
    lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [line for line in lines if bytes(folder) in line]


def test_build_over_its_time_limit_is_killed_and_not_cached(make_builder, tmp_path):
    busy = "constexpr long f() { long s = 0; for (long i = 0; i < 2000000000; ++i) s += i; return s; }\n"
    busy += "long x[f() % 2 + 1];"
    flags = ("-fconstexpr-ops-limit=1000000000000", "-fconstexpr-loop-limit=2147483647")
    request = replace(TINY, cpp_sources=(busy,), extra_cflags=flags)
    builder = make_builder(timeout_s=0.6)
    results = [builder.build(request), builder.build(request)]
    assert [result.status for result in results] == ["timeout", "timeout"]
    assert "build stopped after 0.6 s" in results[0].log
    assert builder.count_runs() == 2
    assert find_processes_naming(tmp_path) == []


@pytest.mark.parametrize(
    "words",
    [
        "c++: fatal error: Killed signal terminated program cc1plus",
        'nvcc error   : \'"$(printf "\\047cicc\\047")"\' died due to signal 9 (Kill signal)',
    ],
    ids=["c++", "nvcc"],
)
def test_killed_compiler_is_not_an_error_of_the_request_nor_cached(make_builder, words):
    request = replace(TINY, cpp_sources=('extern "C" int answer() { return 44; }\n',))
    killed = make_builder(wrap=run_instead(f"echo '{words}'; exit 1"), count_kills=itertools.count().__next__)
    with pytest.raises(HarnessError, match=r"was killed.*--jobs"):
        killed.build(request)
    assert make_builder().build(request).status == "built"


def test_a_source_that_only_speaks_of_being_killed_is_a_failed_build(make_builder):
    request = replace(TINY, cpp_sources=("#error c++: fatal error: Killed signal terminated program cc1plus\n",))
    assert make_builder().build(request).status == "failed"


def test_a_source_that_prints_the_compilers_words_is_a_failed_build(make_builder):
    words = "c++: fatal error: Killed signal terminated program cc1plus"
    request = replace(TINY, cpp_sources=(f'asm(".print \\"{words}\\"\\n.err");\n',))
    result = make_builder(count_kills=lambda: 7).build(request)
    assert result.status == "failed"
    assert f"\n{words}\n" in f"\n{result.log}"


def run_instead(script):
    def wrap(command, *, readable, writable):
        return ["/bin/sh", "-c", script]

    return wrap


@pytest.mark.parametrize("name", ["fused-add", "1x", "x;rm", "größe"])
def test_a_name_that_no_module_can_have_fails_before_anything_is_run(make_builder, name):
    builder = make_builder()
    result = builder.build(replace(TINY, name=name))
    assert result.status == "failed"
    assert f"the extension name {name!r} is not a Python identifier" in result.log
    assert builder.count_runs() == 0


def test_without_a_compiler_it_says_what_to_install(make_builder, toolchain):
    builder = make_builder(toolchain=replace(toolchain, compiler=None, compiler_version=None))
    with pytest.raises(BuildToolError, match=r"no C\+\+ compiler was found; install one .* or set CXX"):
        builder.build(TINY)


def test_without_nvcc_a_cuda_request_says_what_is_missing(make_builder, toolchain):
    builder = make_builder(toolchain=replace(toolchain, nvcc_version=None))
    with pytest.raises(BuildToolError, match=r"a CUDA extension needs nvcc .* lacks nvcc"):
        builder.build(replace(TINY, cuda_sources=("__global__ void f() {}",)))


def test_a_refused_flag_starts_no_compiler(make_builder):
    builder = make_builder()
    result = builder.build(replace(TINY, extra_cflags=("-fplugin=x.so",)))
    assert (result.status, builder.count_runs()) == ("refused", 0)


def test_unwritable_cache_is_an_error_with_a_remedy(make_builder, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(HarnessError, match=r"cache.*--cache-dir"):
        make_builder().build(TINY)


def test_partial_result_of_a_killed_build_is_not_used(make_builder, tmp_path):
    builder = make_builder()
    (tmp_path / "cache" / "build-left" / "work").mkdir(parents=True)
    assert builder.build(TINY).status == "built"


def test_a_stopped_builder_builds_nothing_more(make_builder):
    builder = make_builder()
    builder.stop()
    with pytest.raises(HarnessError, match="the harness is ending"):
        builder.build(TINY)


CUDA = replace(TINY, cuda_sources=("__global__ void f() {}\n",))
FOR_90, FOR_90A, FOR_80 = (
    replace(CUDA, extra_cuda_cflags=(f"-gencode=arch=compute_{name},code=sm_{name}",)) for name in ("90", "90a", "80")
)


def test_a_library_is_kept_by_the_target_that_it_is_compiled_for(make_builder, toolchain):
    builder = make_builder(toolchain=replace(toolchain, architecture="9.0a"))
    both = replace(CUDA, extra_cuda_cflags=(*FOR_80.extra_cuda_cflags, *FOR_90A.extra_cuda_cflags))
    assert builder.key(CUDA) == builder.key(FOR_90A) == builder.key(both)
    assert builder.key(FOR_90) != builder.key(CUDA)


def test_code_for_other_gpus_is_compiled_for_this_one(make_builder, toolchain):
    """Without a GPU it is compiled as requested."""
    with_nvcc = replace(toolchain, architecture="9.0a")
    other = replace(CUDA, extra_cuda_cflags=("-gencode=arch=compute_120a,code=sm_120a",))
    assert make_builder(toolchain=with_nvcc).key(other) == make_builder(toolchain=with_nvcc).key(CUDA)
    without_device = make_builder(toolchain=with_nvcc, has_device=False)
    assert without_device.key(other) != without_device.key(CUDA)


def test_the_emulated_device_runs_code_for_every_target(make_builder):
    uncovered = replace(FOR_90, cuda_sources=("#include <cutlass/gemm.h>\n",))
    result = make_builder(emulate=Emulation(target=find_gpu_model("A100"))).build(uncovered)
    assert (result.status, result.log) == ("uncovered", "cuda.cu:1: not covered: the header cutlass/gemm.h")
