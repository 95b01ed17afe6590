"""Where recorded code comes from, by its content."""

import struct
import subprocess

import pytest
from device_code import build_library

from harness.builder.cache import DEVICE_CODE, digest_code
from harness.evaluation.integrity import code_images
from harness.evaluation.integrity.code_images import find_origins, may_launch_kernels
from harness.sandbox.gpu.recorded_code import RecordedFunction

MAGIC = 0xBA55ED50


def make_fat_binary(*parts, padding=b"\0"):
    """Of parts for several devices, each of which is padded to a multiple of eight bytes."""
    body = b""
    for part in parts:
        padded = part + padding * (-len(part) % 8)
        body += struct.pack("<HHIQI44x", 2, 1, 64, len(padded), len(part)) + padded
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(body)) + body


OTHERS = make_fat_binary(b"first" * 9)
LIBRARYS = make_fat_binary(b"code of a library", b"the same for another device")
OWN = make_fat_binary(b"code of its own")
PLACED = make_fat_binary(b"code that an assembler placed")


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library with two fat binaries, as the only one of the machine."""
    path = build_library(tmp_path, "lib.so", OTHERS + bytes(-len(OTHERS) % 8) + LIBRARYS)
    monkeypatch.setattr(code_images, "_list_libraries", lambda: {path, "/no/such/file"})
    code_images._list_known_parts.cache_clear()
    yield
    code_images._list_known_parts.cache_clear()


@pytest.mark.parametrize(
    ("image", "origin"),
    [
        (LIBRARYS, "machine"),
        (OTHERS, "machine"),
        (LIBRARYS + b"more bytes", "machine"),
        (OWN, "built"),
        (PLACED, "unknown"),
        (make_fat_binary(b"code of a library", b"changed for another device"), "machine"),
        (make_fat_binary(b"code of a library", padding=b"x"), "machine"),
        (make_fat_binary(*[b"for another device"] * 1500, b"code of a library"), "machine"),
        (make_fat_binary(b"code of a Library"), "unknown"),
        (struct.pack("<IHHQ", MAGIC, 1, 16, 1 << 63) + bytes(64), "unknown"),
        (LIBRARYS[:12], "unknown"),
        (b"", "unknown"),
    ],
)
def test_code_is_recognised_by_its_bytes(library, tmp_path, image, origin):
    build_library(tmp_path, "library.so", OWN + PLACED)
    (tmp_path / DEVICE_CODE).write_text(f"{digest_code(b'another')}\n{digest_code(OWN)}")
    assert find_origins([RecordedFunction("f", "", image)], [str(tmp_path / "library.so")]) == [origin]


def test_code_that_is_read_from_a_file_is_the_machines():
    assert find_origins([RecordedFunction("f", "/usr/lib/libcublas.so", b"")], []) == ["machine"]


@pytest.mark.parametrize(("size", "origin"), [(800, "machine"), (100, "unknown")])
def test_code_that_the_reference_runs_is_not_the_candidates_under_another_name(tmp_path, size, origin):
    def assemble(name, places):
        path = tmp_path / name
        path.with_suffix(".s").write_text(f'.section .text.{name},"ax"\n{name}:\n.zero {places}, 7\n')
        subprocess.run(["cc", "-c", path.with_suffix(".s"), "-o", path], check=True)
        return path.read_bytes()

    theirs, own = assemble("sgemm", size), assemble("its_product", size)
    other = assemble("another", size + 4)
    functions = [RecordedFunction("f", "", image) for image in (own, other)]
    assert theirs != own
    assert find_origins(functions, [], [RecordedFunction("g", "", theirs)]) == [origin, "unknown"]


def test_code_that_the_reference_runs_is_not_the_candidates():
    functions = [RecordedFunction("f", "", image) for image in (b"\x7fELF of torch", b"\x7fELF of its own")]
    theirs = [RecordedFunction("g", "", b"\x7fELF of torch")]
    assert find_origins(functions, [], theirs) == ["machine", "unknown"]


@pytest.mark.parametrize(("name", "origin"), [("_Z5solvePf", "machine"), ("_Z5othersPf", "unknown")])
def test_a_kernel_that_the_reference_runs_is_recognised_in_another_form(name, origin):
    theirs = [RecordedFunction("_Z5solvePf", "/usr/lib/libcublas.so", b"")]
    assert find_origins([RecordedFunction(name, "", b"rewritten code")], [], theirs) == [origin]


LAUNCHES = """
__global__ void child(float* y) { y[threadIdx.x] = 1.0f; }
__global__ void parent(float* y) { child<<<1, 32, 0, cudaStreamTailLaunch>>>(y); }
"""


@pytest.mark.parametrize(
    ("image", "launches"),
    [
        (b"\x7fELF of a kernel", False),
        (b"\x7fELF __cuda_syscall_cnpv2LaunchDeviceV2", True),
        (OWN, False),
        (LIBRARYS, False),
        (PLACED, True),
        (make_fat_binary(), True),
        (make_fat_binary(b"code of a library", b"packed code of its own"), True),
        (b"", False),
    ],
)
def test_code_that_may_launch_kernels_is_recognised(library, tmp_path, image, launches):
    build_library(tmp_path, "library.so", OWN + PLACED)
    (tmp_path / DEVICE_CODE).write_text(digest_code(OWN))
    found = may_launch_kernels([RecordedFunction("f", "", image)], [str(tmp_path / "library.so")])
    assert found is launches
    assert not may_launch_kernels([RecordedFunction("f", "/usr/lib/libcublas.so", b"")], [])


def test_code_in_writable_data_of_a_library_is_the_machines(library, tmp_path, monkeypatch):
    path = build_library(tmp_path, "lib.so", OTHERS, section='.ldata,"aw"')
    monkeypatch.setattr(code_images, "_list_libraries", lambda: {path})
    code_images._list_known_parts.cache_clear()
    functions = [RecordedFunction("f", "", OTHERS)]
    assert find_origins(functions, []) == ["machine"]
    assert not may_launch_kernels(functions, [])


@pytest.mark.nvcc
def test_code_of_a_compiler_that_launches_kernels_is_recognised(tmp_path):
    (tmp_path / "code.cu").write_text(LAUNCHES)
    target, shared = ["nvcc", "-arch=sm_90", "-rdc=true"], ["-shared", "-Xcompiler", "-fPIC"]
    linked = ["-dlink", "-cubin", "-lcudadevrt"]
    for options, name in ((linked, "code.cubin"), (shared, "code.so")):
        subprocess.run([*target, *options, "code.cu", "-o", name], cwd=tmp_path, check=True)
    assert may_launch_kernels([RecordedFunction("f", "", (tmp_path / "code.cubin").read_bytes())], [])
    assert may_launch_kernels([], [str(tmp_path / "code.so")])
