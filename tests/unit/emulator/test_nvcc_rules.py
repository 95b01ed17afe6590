"""What nvcc refuses is refused, and what it takes is taken: two tables, held against nvcc where it is installed.

All rows in one compilation each, a row a namespace. Without torch's headers, so that it takes seconds.
"""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from harness.emulator.headers import RUNTIME, list_headers
from harness.emulator.rewrite import rewrite_device_source

HEAD = """
#include <atomic>
#include <cassert>
#include <emulator/qualifiers.h>
#include <emulator/core.h>
#include <emulator/runtime_api.h>
#include <emulator/intrinsics.h>
#include <emulator/atomics.h>
#include <emulator/warp.h>
#include <emulator/small.h>
#include <emulator/inside.h>
"""
LIBRARY = (
    "algorithm array chrono cmath complex functional iostream limits memory numeric stdexcept string tuple typeinfo "
    "utility vector"
)


def read_table(name: str) -> dict[str, str]:
    """Sources by their names, which stand in a line of their own after `//=`."""
    text = (Path(__file__).parent / "programs" / f"{name}.cu").read_text()
    parts = re.split(r"^//= (\w+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


REFUSED, TAKEN = read_table("refused"), read_table("taken")
ALL = {**REFUSED, **TAKEN}


def write_all(rewrite: Callable[[str], str], table: dict[str, str]) -> str:
    rows = (f'namespace row_{name} {{\n#line 1 "{name}.cu"\n{rewrite(text)}\n}}' for name, text in table.items())
    return "\n".join([*(f"#include <{name}>" for name in LIBRARY.split()), *rows])


def rewrite_row(text: str) -> str:
    rewritten, problems = rewrite_device_source(text, checked=False, own_headers=list_headers())
    assert problems == ()
    return rewritten


def list_refused(log: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, log, re.MULTILINE)) & set(ALL)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("strictness")
    (folder / "all.cpp").write_text(HEAD + write_all(rewrite_row, ALL))
    include = ["-I", str(RUNTIME), "-isystem", str(Path(torch.__file__).parent / "include")]
    command = ["c++", "-std=c++20", "-Wno-vla", "-fsyntax-only", "-fmax-errors=0", *include, "all.cpp"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return list_refused(finished.stderr, r"^(\w+)\.cu:\d+:\d+: error: ")


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.quick(12)
def test_source_refused_by_nvcc_is_an_error(name: str, refused: set[str]) -> None:
    assert name in refused


@pytest.mark.parametrize("name", TAKEN)
def test_source_accepted_by_nvcc_is_no_error(name: str, refused: set[str]) -> None:
    assert name not in refused


def test_the_errors_read_as_nvccs(tmp_path: Path) -> None:
    text = (
        "float h(float v) { return v; }\n__global__ void k(float* x) {\n  x[0] = h(x[0]);\n}\n"
        "int N;\n__device__ int d() { return N; }\n"
    )
    (tmp_path / "a.cpp").write_text(f'{HEAD}#line 1 "a.cu"\n{rewrite_row(text)}')
    include = ["-I", str(RUNTIME), "-isystem", str(Path(torch.__file__).parent / "include")]
    finished = subprocess.run(
        ["c++", "-std=c++20", "-fsyntax-only", *include, "a.cpp"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a.cu:3:10: error: " in finished.stderr
    assert 'calling a __host__ function("h") from a __global__ function("k") is not allowed' in finished.stderr
    assert "\na.cu:6:" in finished.stderr and 'identifier "N" is undefined in device code' in finished.stderr


def run_nvcc(name: str, text: str, folder: Path) -> tuple[bool, str]:
    """Whether nvcc takes the text, and what it prints."""
    (folder / f"{name}.cu").write_text("#include <cuda_fp16.h>\n" + text)
    flags = ["-arch=sm_90", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-std=c++20", "-w"]
    command = ["nvcc", *flags, "-c", "-o", f"{name}.o", f"{name}.cu"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_says_the_same_of_the_whole_table(tmp_path: Path) -> None:
    left, named = REFUSED, set(REFUSED)
    while named:  # an error of one pass hides those of the next
        printed = run_nvcc("refused", write_all(str, left), tmp_path)[1]
        named = list_refused(printed, r"^(\w+)\.cu\(\d+\): error")
        left = {name: text for name, text in left.items() if name not in named}
    assert left == {}
    assert run_nvcc("taken", write_all(str, TAKEN), tmp_path)[0]
