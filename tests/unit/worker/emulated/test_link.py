"""The worker's line to the emulators in a candidate's extensions: a library of a few C functions stands for one."""

import os
import shutil
import subprocess

import pytest

from harness.worker.emulated.link import EmulatorLink

SOURCE = r"""
static char told[4096] = "";
static int error = 0;
void harness_emulator_configure(const char* json) { int i = 0; do told[i] = json[i]; while (json[i++]); }
const char* harness_emulator_take_findings(void) { return FINDINGS; }
int harness_emulator_take_error(void) { int taken = error; error = 0; return taken; }
const char* harness_emulator_error_text(int number) { return number == 9 ? "invalid configuration argument" : "?"; }
const char* told_so_far(void) { return told; }
void harness_emulator_keep_from_kernels(void* begin, unsigned long bytes) {}
static const void* placed = 0;
void harness_emulator_place_on_gpu(const void* pointer) { placed = pointer; }
const void* placed_last(void) { return placed; }
int harness_emulator_is_checked(void) { return CHECKED; }
void leave_error(int number) { error = number; }
"""
PLAIN = "int seven(void) { return 7; }"


@pytest.fixture
def compile_library(tmp_path):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")

    def compile_one(source, name="library", *, is_checked=False):
        path = tmp_path / f"{name}.so"
        command = [compiler, "-shared", "-fPIC", f"-DCHECKED={int(is_checked)}", "-x", "c", "-", "-o", path]
        subprocess.run(command, input=source, text=True, check=True)
        return path

    return compile_one


@pytest.fixture
def emulator(compile_library):
    return compile_library(SOURCE.replace("FINDINGS", r'"[{\"check\":\"race\",\"line\":3,\"block\":null}]"'))


@pytest.fixture
def link(emulator):
    made = EmulatorLink()
    made.configure({"order": "ascending", "threads": 2})
    made.adopt(emulator, None, "")
    return made


def told_to(link):
    import ctypes

    (library,) = link._libraries
    library.told_so_far.restype = ctypes.c_char_p
    return library.told_so_far().decode()


def test_extension_gets_settings_when_loaded_and_when_they_change(link):
    assert told_to(link) == '{"order": "ascending", "threads": 2}'
    link.configure({"order": "random", "seed": 5})
    assert told_to(link) == '{"order": "random", "threads": 2, "seed": 5}'


def test_findings_are_taken_as_they_are_and_texts_cut(link, compile_library):
    assert link.take_findings() == [{"check": "race", "line": 3, "block": None}]
    many = ",".join([r"{\"message\":\"" + "x" * 2000 + r"\"}"] * 100)
    link.adopt(compile_library(SOURCE.replace("FINDINGS", f'"[{many}]"'), "other"), None, "")
    found = link.take_findings()
    assert len(found) == 64
    assert len(found[1]["message"]) == 600


def test_an_error_that_a_launch_has_left_is_raised_once(link):
    link._libraries[0].leave_error(9)
    with pytest.raises(RuntimeError, match="CUDA error: invalid configuration argument"):
        link.raise_error()
    link.raise_error()


def test_extensions_are_unchanged_without_emulation(compile_library, emulator):
    link = EmulatorLink()
    link.adopt(emulator, None, "")
    link.configure({"order": "ascending"})
    link.adopt(compile_library(PLAIN, "plain"), None, "")
    assert link.take_findings() == []


@pytest.mark.parametrize(
    ("source", "is_checked", "is_told"),
    [
        ("float first = x.data_ptr<float>()[0];", True, True),
        ("float first = x.data_ptr<float>()[0];", False, False),
        ("float first = x.cpu().data_ptr<float>()[0];", True, False),
        ("#include <thrust/reduce.h>", True, False),
        ("cudaMallocManaged(&p, bytes);", True, False),
    ],
)
def test_checked_extension_learns_gpu_tensors_unless_its_source_is_unclear(
    compile_library, monkeypatch, source, is_checked, is_told
):
    import ctypes

    import torch

    from harness.worker.emulated import tensors

    monkeypatch.setattr(tensors, "_WATCHERS", [])
    link = EmulatorLink()
    link.configure({"order": "ascending"})
    link.adopt(compile_library(SOURCE.replace("FINDINGS", '"[]"'), is_checked=is_checked), None, source)
    (library,) = link._libraries
    library.placed_last.restype = ctypes.c_void_p
    tensor = torch.ones(8)
    assert library.placed_last() is None
    tensors.mark_as_gpu([tensor])
    assert library.placed_last() == (tensor.data_ptr() if is_told else None)
