"""Kernels run: two programs, one of right kernels and one of wrong ones, each compiled plain and checked.

Without torch's headers, so that a compilation takes seconds.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.emulator import Emulation
from harness.emulator.headers import copy_runtime, list_headers
from harness.emulator.rewrite import rewrite_device_source
from harness.emulator.sources import write_target
from harness.hardware.gpus import find_gpu_model

PROGRAMS = Path(__file__).parent / "programs"
TORCH = Path(torch.__file__).parent
FLAGS = [
    "-std=c++20", "-fPIC", "-O1", "-fno-strict-aliasing", "-ffp-contract=fast", "-fno-gnu-unique", "-U_FORTIFY_SOURCE",
    "-g1", "-gdwarf-4", "-w",
]  # fmt: skip
CHECKED = [
    "-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0", "-fsanitize=alignment", "-DHARNESS_CHECKED",
]  # fmt: skip
HEAD = """
#include <atomic>
#include <cassert>
#include <vector>
#include <emulator/qualifiers.h>
#include <emulator/core.h>
#include <emulator/runtime_api.h>
#include <emulator/intrinsics.h>
#include <emulator/atomics.h>
#include <emulator/warp.h>
#include <emulator/small.h>
#include <emulator/inside.h>
"""


def compile_program(name: str, folder: Path, *, checked: bool) -> Path:
    source = (PROGRAMS / f"{name}.cu").read_text()
    text, problems = rewrite_device_source(source, checked=checked, own_headers=list_headers())
    assert problems == ()
    (folder / f"{name}.cpp").write_text(f'{HEAD}#line 1 "{name}.cu"\n{text}')
    (folder / "target.cpp").write_text(write_target(Emulation(target=find_gpu_model("A100"), checked=checked)))
    headers = folder / "include"
    include = ["-I", str(headers), "-isystem", str(TORCH / "include")]
    defines = ["-DHARNESS_CHECKED"] if checked else []
    emulator = folder / "emulator.o"
    if not emulator.exists():
        copy_runtime(headers)
        source = str(headers / "emulator" / "emulator.cpp")  # without -O1 in half the time
        run_compiler([*FLAGS, "-O0", *defines, *include, "-c", source, "-o", "emulator.o"], folder)
    run_compiler([*FLAGS, *(CHECKED if checked else ()), *include, "-c", f"{name}.cpp", "-o", f"{name}.o"], folder)
    libraries = ["-L", str(TORCH / "lib"), "-lc10", f"-Wl,-rpath,{TORCH / 'lib'}", "-lpthread", "-ldl"]
    run_compiler([f"{name}.o", "target.cpp", "emulator.o", "-o", name, *libraries], folder)
    return folder / name


def run_compiler(words: list[str], folder: Path) -> None:
    finished = subprocess.run(["c++", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[:4000]


def run_program(program: Path, **settings: object) -> str:
    finished = subprocess.run(
        [program, json.dumps(settings)], cwd=program.parent, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="session")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulated-plain")


@pytest.fixture(scope="session")
def checked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulated-checked")


@pytest.fixture(scope="session")
def good(plain_folder: Path) -> Path:
    return compile_program("good", plain_folder, checked=False)


@pytest.fixture(scope="session")
def bad_plain(plain_folder: Path) -> Iterator[dict[str, dict]]:
    program = compile_program("bad", plain_folder, checked=False)
    return read_tries(run_program(program, time_limit_s=1, threads=2))


@pytest.fixture(scope="session")
def bad_checked(checked_folder: Path) -> Iterator[dict[str, dict]]:
    program = compile_program("bad", checked_folder, checked=True)
    return read_tries(run_program(program, time_limit_s=0.5))


def read_tries(output: str) -> dict[str, dict]:
    return {entry["name"]: entry for entry in map(json.loads, output.splitlines())}


def assert_all_right(output: str) -> None:
    lines = dict(line.split(" ", 1) for line in output.splitlines())
    assert lines.pop("findings") == "[]"
    assert len(lines) == 25
    assert [name for name, is_right in lines.items() if is_right != "1"] == []


@pytest.mark.parametrize(
    "settings",
    [{"order": "ascending", "threads": 1}, {"order": "descending", "threads": 2}, {"order": "random", "seed": 7}],
)
@pytest.mark.slow
def test_right_kernels_give_the_right_numbers_in_every_order(good: Path, settings: dict) -> None:
    assert_all_right(run_program(good, time_limit_s=120, **settings))


@pytest.mark.slow
def test_right_kernels_raise_no_alarm_when_checked(checked_folder: Path) -> None:
    assert_all_right(run_program(compile_program("good", checked_folder, checked=True), time_limit_s=120))


PLANTED = {
    "shared_race": ("shared_race", {10, 11}),
    "missing_second_barrier": ("shared_race", {16, 18}),
    "global_race": ("global_race", {21}),
    "race_of_blocks": ("global_race", {23}),
    "beyond_the_end": ("out_of_bounds", {27}),
    "beyond_shared": ("out_of_bounds", {32}),
    "beyond_dynamic": ("out_of_bounds", {38, 39}),
    "uninitialised": ("uninitialised_shared", {45}),
    "misaligned": ("misaligned", {47}),
    "divergent": ("barrier_divergence", {49, 51}),
    "absent_lanes": ("absent_lanes", {56}),
    "first_eighth_only": ("undefined_lane", {97}),
    "warp_synchronous": ("shared_race", {64, 65}),
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_mistake_is_named_with_its_line(bad_checked: dict[str, dict], name: str) -> None:
    check, lines = PLANTED[name]
    found = [finding for finding in bad_checked[name]["findings"] if finding["check"] == check]
    assert found and found[0]["line"] in lines and found[0]["file"] == "bad.cu" and found[0]["kernel"] == name


@pytest.mark.parametrize(
    ("name", "asks"), [("shared_race", True), ("missing_second_barrier", True), ("global_race", False)]
)
def test_a_race_names_both_lines_and_asks_for_a_barrier(bad_checked: dict[str, dict], name: str, asks: bool) -> None:
    _, lines = PLANTED[name]
    message = next(one["message"] for one in bad_checked[name]["findings"] if "race" in one["check"])
    other = re.search(r" by thread \(\d+, 0, 0\) at bad\.cu:(\d+) are not ordered", message)
    assert other and int(other[1]) in lines
    assert message.endswith(" are not ordered: missing __syncthreads()?") is asks


def test_an_access_beyond_an_end_names_the_parameter(bad_checked: dict[str, dict]) -> None:
    (found,) = bad_checked["beyond_the_end"]["findings"]
    assert found["message"] == "reads beyond the end of x: byte 4000 of an allocation of 4000 bytes"


def test_a_lane_that_adds_what_no_result_needs_is_only_warned_of(bad_checked: dict[str, dict]) -> None:
    assert [one["severity"] for one in bad_checked["first_eighth_only"]["findings"]] == ["warning"]


FATAL = {
    "wild": ("out_of_bounds", 700, 68),
    "endless": ("time_limit", 702, 70),
    "deadlock": ("barrier_divergence", 702, 73),
    "recursive": ("stack_overflow", 719, None),
    "too_much_declared": ("too_much_shared", 98, None),
    "huge_grid": ("time_limit", 702, None),
    "assertion": ("assertion", 710, 93),
}


@pytest.mark.parametrize("name", FATAL)
@pytest.mark.slow
def test_deadlocked_kernel_ends_as_an_error_in_bounded_time(bad_plain: dict[str, dict], name: str) -> None:
    check, error, line = FATAL[name]
    found = bad_plain[name]
    assert (found["outcome"], found["error"]) == ("raised", error)
    if name != "huge_grid":
        assert found["findings"][0]["check"] == check
    assert line is None or found["findings"][0]["line"] == line


INVALID = {
    "too_much_dynamic": ("too_much_shared", 1),
    "too_many_threads": ("too_many_threads", 9),
    "beyond_launch_bounds": ("too_many_threads", 1),
    "empty_grid": ("invalid_launch", 9),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_launch_that_would_fail_there_fails_here(bad_checked: dict[str, dict], name: str) -> None:
    check, error = INVALID[name]
    found = bad_checked[name]
    assert (found["outcome"], found["error"], found["findings"][0]["check"]) == ("returned", error, check)


def test_more_dynamic_shared_memory_can_be_allowed(bad_checked: dict[str, dict]) -> None:
    assert bad_checked["allowed_dynamic"] == {
        "name": "allowed_dynamic",
        "outcome": "returned",
        "error": 0,
        "findings": [],
    }
