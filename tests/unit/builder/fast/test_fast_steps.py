"""Which sources the fast strategy takes, and what it makes of the texts it works on; no compiler is run."""

import re
import shutil

import pytest

from harness.builder.fast.line_markers import MISSING, keep_own, read_macros, split_regions
from harness.builder.fast.prebuilt import (
    SOURCE,
    STEPS,
    AddedHeader,
    PrebuiltError,
    PrebuiltHeaders,
    name_header,
    read_steps,
    write_operators,
)
from harness.builder.fast.strategy import (
    FRONT_FAILED,
    FRONT_LOG,
    MAIN_FAILED,
    FastBuild,
    Source,
    join_sources,
    prepare_fast,
    refuse_source,
    write_script,
)
from harness.builder.fast.stub_headers import TorchNames
from harness.builder.torch_ninja import write_plan
from harness.domain import BuildRequest

COMMANDS = {
    "host_preprocess": "gcc -E -x c++ -DX -include cuda_runtime.h -m64 cuda.cu -o cuda.cpp4.ii",
    "lower": "cudafe++ --module_id_file_name id --gen_c_file_name cuda.cudafe1.cpp cuda.cpp4.ii",
    "device_preprocess": "gcc -E -x c++ -DY -include cuda_runtime.h -m64 cuda.cu -o cuda.cpp1.ii",
    "device": "cicc --module_id_file_name id cuda.cpp1.ii -o cuda.ptx",
    "assemble": "ptxas cuda.ptx -o cuda.cubin",
    "embed": "fatbinary --embedded-fatbin=cuda.fatbin.c",
    "host_compile": "gcc -c -x c++ -fPIC cuda.cudafe1.cpp -o cuda.cuda.o",
}


ADDED = AddedHeader(texts=[("/a.h", "one;"), ("/b.h", "two;")], macros={"/a.h": {"A": "#define ADDED"}}, words=[])


def no_words():
    return None


@pytest.fixture
def kit(tmp_path):
    folder = tmp_path / "kit"
    folder.mkdir()
    names = TorchNames(
        scalar_types=(("float", "Float"),), device_types=("CPU",), constants="", methods={}, functions={}
    )
    return PrebuiltHeaders(
        folder=folder, steps={name: command.split() for name, command in COMMANDS.items()}, names=names,
        known_headers=frozenset({"ATen/ATen.h", "torch/types.h", "ATen/ops/add_ops.h"}), base_files=frozenset(),
        include=folder / "include",
        host_macros="#define TORCH_KNOWN 1\n", device_macros="",
        feature_macros={"host": {"half": "#define HALF_GUARD\n"}, "device": {}},
        hidden_macros=frozenset({"__HALF_H__", "BLAS_VERSION"}),
    )  # fmt: skip


def why_unfit(kit, tmp_path, source):
    folder = tmp_path / "fast"
    folder.mkdir()
    request = BuildRequest(name="ext", cuda_sources=(source,))
    refused = refuse_source(join_sources(request))
    source = Source.read(request, kit)
    if reason := refused or source.refuse():
        return reason
    source.write(folder, [ADDED for _ in source.list_added()])
    write_script(source, folder, kit.folder, main_command="true", link_command="true")
    return None


@pytest.mark.parametrize(
    "source",
    [
        "#include <torch/extension.h>\n__global__ void k() {}",
        "#include <ATen/ATen.h>\n#include <c10/cuda/CUDAGuard.h>",
        "#include <vector>\n#include <cuda_fp16.h>", "#ifdef __CUDA_ARCH__\n#endif\n#include <torch/extension.h>",
        "#define OWN\n#ifdef OWN\n#endif\n#include <torch/extension.h>",
        "#include <torch/extension.h>\n#if TORCH_KNOWN\n#endif",
        "// as PyTorch does; requires C++17\nvoid f();",
        "/* #include <ATen/native/cuda/Loops.cuh>\n PyObject */ void f();",
        'const char* s = "it uses pybind11 and requires Python";', 'auto s = R"(\nPyObject)";',
        "// #include <torch/extension.h> \\\n#ifdef FROM_ANOTHER_HEADER\nvoid f();",
    ],
)  # fmt: skip
def test_an_ordinary_source_fits(kit, tmp_path, source):
    assert why_unfit(kit, tmp_path, source) is None


def test_only_cuda_headers_are_read_for_their_macros(kit, tmp_path):
    assert why_unfit(kit, tmp_path, "#if CUDA_VERSION < 12000\n#include <ATen/ATen.h>\n#endif") is None
    text = (tmp_path / "fast" / SOURCE).read_text()
    assert re.findall("#include.*", text) == ["#include <cuda.h>", "#include <cuda_runtime.h>"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("#include <ATen/native/cuda/Loops.cuh>", "it includes ATen/native/cuda/Loops.cuh"),
        ("#include <pybind11/pybind11.h>", "it uses pybind11"),
        ("#ifndef __HALF_H__\n#endif", "its #if conditions test __HALF_H__"),
        ("#if defined(BLAS_VERSION) && BLAS_VERSION > 12\n#endif", "its #if conditions test BLAS_VERSION"),
        ("PyObject* f();", "it uses PyObject"),
        ("template <typename T> requires true void f();", "it uses requires"),
        ('auto s = R"(\n#include <torch/extension.h>\n)";', "a string contains an #include"),
        ("#if __has_include(<x>)\n#endif", "it uses __has_include"),
        ("template <typename T> req\\\nuires true void f();", "it uses requires"),
        ("int n = 1'0; template <typename T> requires true void f(); char c = 'x';", "it uses requires"),
        (
            "#include <torch/extension.h>\n#ifdef FROM_ANOTHER_HEADER\n#endif",
            "its #if conditions test FROM_ANOTHER_HEADER",
        ),
    ],
)
def test_a_source_whose_meaning_could_change_is_left_to_the_plain_strategy(kit, tmp_path, source, reason):
    assert why_unfit(kit, tmp_path, source) == reason


def test_no_headers_are_made_for_a_source_that_cannot_use_them(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")  # without a GPU
    work = tmp_path / "work"
    work.mkdir()
    request = BuildRequest(name="ext", cuda_sources=("PyObject* f();",))
    write_plan(request, work)
    assert list(prepare_fast(request, work, prebuilt_cache=None)) == ["it uses PyObject"]


def test_torchs_own_includes_are_taken_out_and_lines_stay_where_they_were(kit, tmp_path):
    why_unfit(kit, tmp_path, "#include <torch/extension.h>\n#include <vector>\nint line_three;")
    lines = (tmp_path / "fast" / "cuda.cu").read_text().splitlines()
    assert lines[3:] == ["", "#include <vector>", "int line_three;"]


def test_cuda_macros_exist_only_if_stub_headers_show_the_header(kit, tmp_path):
    why_unfit(kit, tmp_path, "#include <cublas_v2.h>")
    assert "HALF_GUARD" not in (tmp_path / "fast" / "host.macros").read_text()
    shutil.rmtree(tmp_path / "fast")
    why_unfit(kit, tmp_path, "at::Half x;")
    assert "HALF_GUARD" in (tmp_path / "fast" / "host.macros").read_text()


def test_regions_are_told_apart_by_their_files():
    text = 'prologue\n# 1 "a.h" 3\none\n# 7\ntwo\n# 3 "a.cu"\nthree\n# 2 "a.h"\nfour\n'
    assert [name for name, _ in split_regions(text)] == ["", "a.h", "a.cu", "a.h"]
    assert "".join(part for _, part in split_regions(text)) == text


def test_only_what_headers_brought_is_dropped():
    text = '# 1 "a.cu"\nprologue\n# 1 "a.h"\nheader;\n# 3 "a.cu"\nown;\n# 1 "other.h"\nother\n'
    kept = keep_own(text, source="a.cu", dropped={"a.h"}, after_prologue="delta\n")
    assert "header" not in kept
    assert re.findall(r"prologue|delta|own|other$", kept, re.MULTILINE) == ["prologue", "delta", "own", "other"]


def test_an_attribute_that_a_dropped_file_gave_earlier_stays_with_its_declaration():
    text = '# 1 "a.cu"\nprologue;\n# 1 "more.h"\nclass\n# 1 "a.h"\n visible tuple {\n# 2 "more.h"\nint x; };\n'
    text += '# 1 "a.h"\nheader;\n'
    kept = keep_own(text, source="a.cu", dropped={"a.h"}, after_prologue="")
    assert re.findall(r"^ ?(class|visible|int|header)", kept, re.MULTILINE) == ["class", "visible", "int"]


def test_name_of_an_unnamed_namespace_in_a_dropped_file_is_declared():
    named = "namespace _GLOBAL__N__1 {{ }}; using namespace ::{}_GLOBAL__N__1;\n".format
    text = f'# 1 "a.cu"\nprologue;\n# 1 "a.h"\n{named("x::y::")}# 1 "b.h"\n{named("z::")}'
    kept = keep_own(text, source="a.cu", dropped={"a.h"}, after_prologue="")
    declared = [line for line in kept.splitlines() if "using namespace" in line and "{ };" not in line]
    assert declared == ["namespace x::y::_GLOBAL__N__1 { using namespace ::x::y; }"]


def test_a_stub_without_a_kernel_names_a_symbol_that_does_not_exist():
    stub = "template< class T> static void __wrapper__device_stub_k(T *&x) { ::cudaLaunchKernel(0, 0, 0, 0, 0, 0);}\n"
    kept = keep_own(
        f'# 1 "a.cu"\nprologue\n# 1 "b.h"\n# 2 "a.cu"\n{stub}', source="a.cu", dropped=set(), after_prologue=""
    )
    assert "cudaLaunchKernel" not in kept
    assert kept.count(MISSING) == 2


def test_macros_are_those_that_hold_at_the_end():
    text = (
        '# 1 "<built-in>"\n#define BUILT_IN 1\n# 1 "a.h"\n#define A 1\n#define B(x) x\n#undef A\n# 1 "b.h"\n#define C\n'
    )
    assert read_macros(text) == {"B": "#define B(x) x", "C": "#define C"}
    assert list(read_macros(text, {"b.h"})) == ["C"]


def test_nvccs_steps_are_read_with_their_variables():
    lines = ["#$ CICC_PATH=/cuda/nvvm/bin", "#$ PATH=/cuda/bin:/usr/bin"]
    lines += [f"#$ {command}" for command in COMMANDS.values()]
    text = (
        "\n".join(lines)
        .replace("#$ cicc", '#$ "$CICC_PATH/cicc"')
        .replace(" cuda.ptx", ' "/tmp/tmpxft_00_00-6_cuda.ptx"')
    )
    steps = read_steps(text)
    assert tuple(steps) == STEPS
    assert steps["device"][0] == "/cuda/nvvm/bin/cicc"
    assert steps["assemble"][1] == "cuda.ptx"


def test_other_steps_than_the_known_ones_are_no_kit():
    with pytest.raises(PrebuiltError, match="nvcc runs 1 steps"):
        read_steps("#$ gcc -c x.cu")


@pytest.mark.parametrize(
    ("returncode", "has_cuda", "target"),
    [
        (1, True, "cuda.cuda.o"),
        (FRONT_FAILED, True, "cuda.cuda.o"),
        (MAIN_FAILED, True, "main.o"),
        (1, False, "main.o"),
    ],
)
def test_fast_failure_has_the_message_of_the_plain_strategy(tmp_path, returncode, has_cuda, target):
    build = FastBuild(folder=tmp_path, readable=(), has_standard_main=True, find_words=no_words if has_cuda else None)
    assert build.name_failed(returncode) == target


@pytest.mark.parametrize(
    ("log", "as_ever", "returncode", "decided"),
    [
        ("main.cpp:3:1: error: no", True, MAIN_FAILED, True),
        ("main.cpp:3:1: fatal error: x.h: No such file", True, MAIN_FAILED, True),
        ("main.cpp:3:1: error: no", False, MAIN_FAILED, False),
        ("main.cpp:3:1: error: no", True, 1, False),
        ("/usr/bin/ld: cannot find -lnowhere: No such file or directory", True, 1, True),
        ("main.cpp:3:1: internal compiler error: no\nmain.cpp:3:1: error: no", True, MAIN_FAILED, False),
        ("cc1plus: error: one or more PCH files were found, but they were invalid", True, MAIN_FAILED, False),
        ("c++: fatal error: Killed signal terminated program cc1plus", True, MAIN_FAILED, False),
        ("main.cpp:3:1: warning: no error", True, MAIN_FAILED, False),
    ],
)
def test_an_error_of_the_same_compiler_in_the_same_text_is_final(tmp_path, log, as_ever, returncode, decided):
    build = FastBuild(folder=tmp_path, readable=(), has_standard_main=as_ever)
    assert build.find_verdict(returncode, log) == (log if decided else None)


def write_front_error(folder, name):
    source = folder / SOURCE
    (folder / FRONT_LOG).write_text(f'{source}(1): error: identifier "{name}" is undefined\n\n')
    (folder / "body.host.ii").write_text(f'# 1 "{source}"\nvoid f() {{ {name}(); }}\n')


@pytest.mark.parametrize(("known", "decided"), [({"at"}, True), ({"at", "LAUNCH_CHECK"}, False), (None, False)])
def test_a_name_is_unknown_unless_a_header_may_have_it(tmp_path, known, decided):
    write_front_error(tmp_path, "LAUNCH_CHECK")
    words = None if known is None else (known, frozenset())
    build = FastBuild(folder=tmp_path, readable=(), has_standard_main=True, find_words=lambda: words)
    assert (build.find_verdict(FRONT_FAILED, "") is not None) == decided


def test_operators_that_a_source_names_are_declared(kit, tmp_path):
    for name in ("add", "add_ops", "sum", "sum_ops", "median"):
        path = kit.include / "ATen" / "ops" / f"{name}.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#pragma once\n#include <c10/x.h>\nint {name};\n")
    assert write_operators(kit, {"sum", "add", "at"}).split() == ["int", "add;", "int", "sum_ops;", "int", "sum;"]
    assert why_unfit(kit, tmp_path, "#include <ATen/ops/sum.h>") is None
    assert "int sum;" in (tmp_path / "fast" / "operators.h").read_text()


def test_text_of_a_file_that_two_headers_add_is_written_once(kit, tmp_path):
    why_unfit(kit, tmp_path, "#include <c10/cuda/CUDAGuard.h>\n#include <c10/cuda/CUDAStream.h>")
    assert (tmp_path / "fast" / "added.ii").read_text() == "one;two;"
    assert "#define ADDED" in (tmp_path / "fast" / "device.macros").read_text()


def test_an_error_that_names_a_kit_is_not_the_candidates(tmp_path):
    build = FastBuild(folder=tmp_path, readable=(tmp_path / "kit",), has_standard_main=True)
    missing = f"main.cpp:2:10: fatal error: {tmp_path}/kit/torch/extension.h: No such file or directory"
    assert build.find_verdict(MAIN_FAILED, missing) is None
    other = "main.cpp:2:10: fatal error: other.h: No such file or directory"
    assert build.find_verdict(MAIN_FAILED, other) == other


@pytest.mark.parametrize("shown", ["link", "real"])
def test_headers_are_known_by_their_names_where_torch_lies_behind_a_link(tmp_path, shown):
    (tmp_path / "real" / "include").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    include = tmp_path / "link" / "include"
    assert name_header(f"{tmp_path}/{shown}/include/ATen/ATen.h", include) == "ATen/ATen.h"
    assert name_header(f"{tmp_path}/{shown}/include/torch/csrc/api/include/torch/all.h", include) == "torch/all.h"
    assert name_header("/usr/include/stdio.h", include) == "/usr/include/stdio.h"
