"""What candidates may ask the compiler for that is broken, hostile or too much: each ends as a verdict, soon."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest, BuildToolError, HarnessError

pytestmark = pytest.mark.usefixtures("needs_compiler")
TINY = BuildRequest(name="tiny", cpp_sources=('extern "C" int answer() { return 42; }\n',), no_implicit_headers=True)
CUDA = replace(TINY, cuda_sources=("__global__ void f() {}\n",), with_cuda=True)


@pytest.fixture(scope="module")
def toolchain():
    return probe_toolchain()


@pytest.fixture
def make_builder(tmp_path, toolchain):
    def make(**changes):
        def wrap(command, *, readable, writable):
            return list(command)

        options = {"cache": tmp_path / "cache", "toolchain": toolchain, "wrap": wrap, "timeout_s": 60.0}
        return Builder(**(options | {"environment": lambda: dict(os.environ)} | changes))

    return make


def test_a_header_that_does_not_exist_is_named(make_builder):
    result = make_builder().build(replace(TINY, cpp_sources=('#include "missing_header.h"\n',)))
    assert result.status == "failed"
    assert "missing_header.h: No such file" in result.log


def test_endless_template_recursion_is_an_error_of_the_compiler(make_builder):
    endless = "template <int N> struct S { static constexpr int v = S<N + 1>::v; };\nint x = S<0>::v;\n"
    result = make_builder().build(replace(TINY, cpp_sources=(endless,)))
    assert result.status == "failed"
    assert "template instantiation depth" in result.log


def test_a_source_of_ten_megabytes_is_built(make_builder):
    line = "// " + "x" * 97 + "\n"
    assert make_builder().build(replace(TINY, cpp_sources=(line * 105_000, *TINY.cpp_sources))).status == "built"


@pytest.mark.slow
def test_a_source_that_writes_endless_errors_has_a_bounded_log(make_builder):
    result = make_builder().build(replace(TINY, cpp_sources=("int f() { return missing; }\n" * 5_000,)))
    assert result.status == "failed"
    assert len(result.log) <= 500_000


@pytest.fixture
def use_compiler(tmp_path, monkeypatch):
    """Puts a script in the place of the compiler."""

    def use(script):
        program = tmp_path / "c++"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("CXX", str(program))

    return use


def test_a_compiler_that_crashes_is_a_failed_build_with_its_words(make_builder, use_compiler):
    crash = "echo 'internal compiler error: in build_this, at file.cc:1' >&2; exit 4"
    use_compiler(f'case " $* " in *" -c "*) {crash};; *) exec c++ "$@";; esac')
    result = make_builder().build(TINY)
    assert result.status == "failed"
    assert "internal compiler error" in result.log


def test_compiler_without_a_version_is_a_machine_error(make_builder, use_compiler):
    use_compiler("exit 4")
    with pytest.raises(BuildToolError, match="torch cannot build tiny"):
        make_builder().build(TINY)


@pytest.mark.parametrize("words", ["unrecognized command line option '-std=c++20'", "Illegal instruction"])
def test_too_old_compiler_is_a_machine_error_and_not_cached(make_builder, use_compiler, tmp_path, words):
    old = f'case " $* " in *" -std=c++"*) echo "c++: error: {words}" >&2; exit 1;; *) echo 4.8.5;; esac'
    use_compiler(old)
    with pytest.raises(BuildToolError, match=r"c\+\+ cannot be used.*empty file \(c\+\+: error.*another compiler"):
        make_builder().build(TINY)
    assert list((tmp_path / "cache").rglob("log.txt")) == []


@pytest.mark.parametrize("tool", ["as", "ld"])
def test_a_missing_assembler_or_linker_is_the_machines_fault_and_not_remembered(make_builder, tool, tmp_path):
    """A folder with a program that fails comes first where the compiler looks for its parts."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / tool).write_text('#!/bin/sh\necho "Error: no library for $0" >&2; exit 127\n')
    (parts / tool).chmod(0o755)
    environment = {**os.environ, "COMPILER_PATH": str(parts)}
    with pytest.raises(BuildToolError, match=f"empty file .*no library for .*{tool}"):
        make_builder(environment=lambda: environment).build(TINY)
    assert list((tmp_path / "cache").rglob("log.txt")) == []


def test_full_disk_during_a_build_leaves_no_library(make_builder, tmp_path):
    def fill(command, *, readable, writable):
        return ["/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *command]

    big = replace(TINY, cpp_sources=('extern "C" { char answer[1 << 20] = {1}; }\n',))
    with pytest.raises(BuildToolError, match="cannot build an empty file"):
        make_builder(wrap=fill).build(big)
    assert list((tmp_path / "cache").rglob("library.so")) == []


def test_build_on_a_full_disk_is_a_harness_error_with_a_remedy(make_builder):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with pytest.raises(HarnessError, match="--cache-dir"):
        make_builder(cache=full / "cache").build(TINY)


@pytest.mark.parametrize(
    ("kind", "flag"),
    [
        ("extra_cflags", "-include /etc/passwd"), ("extra_cflags", "@/etc/passwd"), ("extra_cflags", "-fplugin=./x.so"),
        ("extra_cuda_cflags", "-Xcompiler -fplugin=./x.so"), ("extra_cuda_cflags", "-Xcudafe --gen_c_file_name=/tmp/x"),
        ("extra_ldflags", "-Wl,--version-script=/etc/passwd"),
    ],
)  # fmt: skip
def test_flag_that_reads_files_or_runs_programs_is_refused_first(make_builder, kind, flag):
    started = []
    result = make_builder(wrap=lambda command, **_: started.append(command)).build(replace(TINY, **{kind: (flag,)}))
    assert result.status == "refused"
    assert flag in result.log
    assert started == []


@pytest.mark.nvcc
def test_a_host_compiler_that_nvcc_cannot_use_is_the_machines_fault(make_builder, tmp_path):
    (tmp_path / "g++").write_text("#!/bin/sh\necho '#error -- unsupported GNU version!' >&2; exit 1\n")
    (tmp_path / "g++").chmod(0o755)
    environment = {**os.environ, "NVCC_CCBIN": str(tmp_path / "g++")}
    with pytest.raises(BuildToolError, match=r"nvcc cannot be used.*unsupported GNU version.*CUDA_HOME"):
        make_builder(environment=lambda: environment, fast=False).build(CUDA)
    assert list((tmp_path / "cache").rglob("log.txt")) == []


@pytest.mark.nvcc
@pytest.mark.quick(1)
@pytest.mark.parametrize("flag", ["-std=c++1", "-gencode=arch=compute_1,code=sm_1"])
def test_a_flag_that_is_nonsense_is_nvccs_to_refuse(make_builder, flag):
    result = make_builder(fast=False).build(replace(CUDA, extra_cuda_cflags=(flag,)))
    assert result.status == "failed"


@pytest.mark.parametrize("flag", ["-fno-such-flag", "-std=c++1", "-march=no-such-cpu"])
def test_a_flag_that_is_nonsense_is_the_compilers_to_refuse(make_builder, flag):
    result = make_builder().build(replace(TINY, extra_cflags=(flag,)))
    assert result.status == "failed"
    assert flag.partition("=")[0] in result.log


def test_two_extensions_of_one_name_are_two_builds(make_builder):
    builder = make_builder()
    other = replace(TINY, cpp_sources=('extern "C" int answer() { return 43; }\n',))
    results = [builder.build(TINY), builder.build(other)]
    assert [result.status for result in results] == ["built", "built"]
    assert results[0].extension != results[1].extension
