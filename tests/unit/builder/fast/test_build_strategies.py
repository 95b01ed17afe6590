"""Both strategies make the same of every program of the corpus: the host code that is compiled, and the device's code;
what the fast strategy makes can be linked and loaded. No strategy builds a broken program.

The plain strategy's front end reads all programs at once, the fast strategy's a few; line markers name each.
"""

import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from broken_cuda_corpus import list_broken_programs
from cuda_corpus import list_programs

from harness.builder.fast.line_markers import MISSING, split_regions
from harness.builder.fast.prebuilt import IMPLICIT_HEADERS, lowering, preprocess
from harness.builder.fast.prebuilt_cache import strip_name
from harness.builder.fast.strategy import FRONT_LOG, SCRIPT, Source, write_script
from harness.builder.targets import select_target
from harness.builder.toolchain import probe_toolchain
from harness.builder.torch_ninja import read_plan, write_plan
from harness.domain import BuildRequest

FEW = 36  # programs
PARTS = 3  # so that test processes share the groups
pytestmark = [pytest.mark.slow, pytest.mark.nvcc, pytest.mark.timeout(3600)]


def lower_plainly(kit, programs, folder, run):
    """Program name -> what the front end makes of it with torch's own headers."""
    (folder / "all.cu").write_text(write_together(programs, IMPLICIT_HEADERS))
    run(preprocess(kit.steps["host_preprocess"], "all.cu", "all.ii"), folder)
    run(lowering(kit.steps["lower"], "all.ii", "all.cpp"), folder)
    return read_host((folder / "all.cpp").read_text(), programs)


def read_host(lowered, programs):
    found = {}
    for name, text in split_regions(lowered):
        found[Path(name).stem] = found.get(Path(name).stem, "") + text
    return {program.name: normalise_host(found[program.name]) for program in programs}


def compile_device_plainly(kit, programs, folder, run):
    """Writes cuda.ptx, the device's code of all programs with torch's own headers."""
    (folder / "all.cu").write_text(write_together(programs, IMPLICIT_HEADERS))
    run(preprocess(kit.steps["device_preprocess"], "all.cu", "cuda.cpp1.ii"), folder)
    words = list(kit.steps["device"])
    at = words.index("--module_id_file_name")
    del words[at : at + 2]
    run(words, folder)


def write_together(programs, implicit=()):
    """One source of these programs, in which each is a file of its own to the compiler."""
    headers = list(dict.fromkeys(header for program in programs for header in program.headers))
    parts = [f"#include <{header}>" for header in (*implicit, *headers)]
    parts += [f'# 1 "{program.name}.cu"\nnamespace {program.name} {{\n{program.body}\n}}' for program in programs]
    return "\n".join(parts) + "\n"


def build_fast(prebuilt_cache, kit, programs, folder, link_command="true"):
    """(host code by program, entry points) of a few programs in the fast strategy; None where it does not build
    them."""
    folder.mkdir()
    request = BuildRequest(name="few", cuda_sources=(write_together(programs),))
    source = Source.read(request, kit)
    assert source.refuse() is None
    source.write(folder, [prebuilt_cache.find_added_header(kit, header) for header in source.list_added()])
    write_script(source, folder, kit.folder, main_command="true", link_command=link_command)
    if run_compiler(["sh", SCRIPT], folder)[0] != 0:
        return None
    own = (folder / "own.cpp").read_text().partition("_NV_ANON_NAMESPACE")[0]
    return read_host(own, programs), read_entries((folder / "cuda.ptx").read_text())


def split_programs(programs):
    """A few at a time: the façade is made for the words of a source, and is to be lean."""
    kinds = [[one for one in programs if one.headers == headers] for headers in {one.headers: None for one in programs}]
    return [few for kind in kinds for few in (kind[first : first + FEW] for first in range(0, len(kind), FEW))]


def normalise_host(text):
    """Without line markers, white space, names of files, and the pragmas that the front end puts first."""
    text = re.sub(r"^(# \d+.*|#pragma GCC diagnostic .*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r'"[^"\s]*\b(\w+)\.cu(\\?")', r'"source\2', text)
    text = text[text.find("namespace p") :]
    text = re.sub(r"\s+", "", re.sub(r"_GLOBAL__N__\w+", "unnamed", text))
    text = re.sub(r"__T\d+", "__T", text)  # parameters of templates that have no name of their own, numbered
    # A constant as a template argument is written by its name or by its value.
    text = re.sub(r"<c10::k([A-Z]\w*)>", r"<c10::ScalarType::\1>", text)
    return text.replace(
        "::cudaLaunchKernel(0,0,0,0,0,0);", f"{MISSING}();"
    )  # see harness.builder.fast.line_markers.keep_own


def read_entries(ptx):
    """Entry point -> code, without what numbers it within its file."""
    entries = {}
    for part in re.split(r"(?=^(?:\.visible |\.weak )?\.entry )", ptx, flags=re.MULTILINE)[1:]:
        name = re.search(r"\.entry\s+(\w+)", part)[1]
        code = re.sub(r"_GLOBAL__N__\w+", "unnamed", part.partition("\n}\n")[0])
        code = re.sub(r"_INTERNAL_\w+?_cuda_cu_\w{8}", "internal", re.sub(r"__local_depot\d+", "local", code))
        entries[re.sub(r"_GLOBAL__N__\w+", "unnamed", name)] = re.sub(r"\$L__BB\d+_", "$L_", re.sub(r"//.*", "", code))
    return entries


def run_checked(command, folder):
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{shlex.join(command)[:200]}\n{finished.stdout[-3000:]}{finished.stderr[-3000:]}"


def run_compiler(command, folder):
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return finished.returncode, finished.stdout + finished.stderr


@pytest.fixture(scope="module")
def plan(tmp_path_factory, module_environment):
    """torch's own build of a CUDA extension, as variables."""
    toolchain = probe_toolchain()
    module_environment.setenv("CPLUS_INCLUDE_PATH", ":".join(toolchain.packaged_cuda_headers))
    folder = tmp_path_factory.mktemp("plan")
    request = BuildRequest(name="p", cpp_sources=("",), cuda_sources=("",))
    write_plan(select_target(request, toolchain.architecture)[0], folder)
    return read_plan(folder)


@pytest.fixture(scope="module")
def kit(plan, prebuilt_cache):
    flags = f"{strip_name(plan['cuda_cflags'])} {plan['cuda_post_cflags']}".strip()
    found = prebuilt_cache.find_cuda_headers(plan["nvcc"], flags)
    assert not isinstance(found, str), found
    return found


@pytest.fixture(scope="module")
def module_environment():
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


LOAD = """
import ctypes, os, sys
from pathlib import Path
import torch
for library in Path(torch.__file__).parents[1].glob("nvidia/*/lib/libcublas.so.*"):  # torch 2.15 loads it when needed
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
for path in sys.argv[1:]:
    ctypes.CDLL(path, mode=os.RTLD_NOW)
"""


def has_header(plan, name):
    """Whether the CUDA toolkit or a package beside torch has it: cuRAND's are installed apart."""
    toolkit = Path(plan["nvcc"]).resolve().parents[1]
    folders = [toolkit / "include", *toolkit.glob("targets/*/include"), *probe_toolchain().packaged_cuda_headers]
    return any((Path(folder) / name).is_file() for folder in folders)


@pytest.fixture
def plainly_made(kit, once, tmp_path):
    """Host code by program and the device's code by entry point, of these programs in the plain strategy."""

    def make(programs):
        host = lower_plainly(kit, programs, tmp_path, run_checked)
        compile_device_plainly(kit, programs, tmp_path, run_checked)
        return host, read_entries((tmp_path / "cuda.ptx").read_text())

    return lambda programs: once("plainly_made", lambda: make(programs))


@pytest.mark.parametrize("part", range(PARTS))
def test_both_strategies_make_the_same_of_every_program(prebuilt_cache, kit, plan, plainly_made, tmp_path, part):
    absent = {name for name in ("curand_kernel.h",) if not has_header(plan, name)}
    programs = [program for program in list_programs() if not absent.intersection(program.headers)]
    assert len(programs) >= 200
    host, device = plainly_made(programs)
    link = f"{plan['cxx']} cuda.cuda.o {plan['ldflags']} -o linked.so"
    unfit, groups = [], split_programs(programs)[part::PARTS]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        built = list(pool.map(lambda few: build_fast(prebuilt_cache, kit, few, tmp_path / few[0].name, link), groups))
    for few, found in zip(groups, built, strict=True):
        if found is None:
            unfit += [program.name for program in few]
            continue
        own_host, own_device = found
        assert own_host == {program.name: host[program.name] for program in few}
        assert own_device == {name: code for name, code in device.items() if name in own_device}
        assert own_device, "programs without a kernel show nothing"
    assert len(unfit) <= sum(map(len, groups)) // 20, f"the fast strategy is to build nearly all; not {unfit}"
    libraries = sorted(map(str, tmp_path.glob("*/linked.so")))
    assert len(libraries) == len(built) - built.count(None)
    run_checked([sys.executable, "-c", LOAD, *libraries], tmp_path)


def blame_plainly(kit, programs, folder):
    """Names of programs in which the front end finds errors in host code, with torch's own headers."""
    (folder / "all.cu").write_text(write_together(programs, IMPLICIT_HEADERS))
    run_checked(preprocess(kit.steps["host_preprocess"], "all.cu", "all.ii"), folder)
    return read_blamed(run_compiler(lowering(kit.steps["lower"], "all.ii", "all.cpp"), folder)[1])


def blame_fast(prebuilt_cache, kit, programs, folder):
    """The same with the fast strategy's headers."""
    build_fast(prebuilt_cache, kit, programs, folder)
    return read_blamed((folder / FRONT_LOG).read_text())


def read_blamed(log):
    return sorted(set(re.findall(r"^(b\d+)\.cu\(\d+\): error", log, re.MULTILINE)))


def list_others(blamed):
    return [program for program in list_broken_programs() if program.name not in blamed]


def compiles_device_plainly(kit, program, folder):
    """Whether device code goes through front end and assembler, with torch's own headers."""
    folder.mkdir()
    try:
        compile_device_plainly(kit, [program], folder, run_checked)
        run_checked(kit.steps["assemble"], folder)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("part", range(2))
def test_the_plain_strategy_builds_no_broken_program(kit, once, tmp_path, part):
    blamed = once("blamed_plainly", lambda: blame_plainly(kit, list_broken_programs(), tmp_path))
    others = list_others(blamed)[part::2]
    assert [one.name for one in others if compiles_device_plainly(kit, one, tmp_path / one.name)] == []


def test_the_fast_strategy_builds_no_broken_program(prebuilt_cache, kit, tmp_path):
    others = list_others(blame_fast(prebuilt_cache, kit, list_broken_programs(), tmp_path / "all"))
    assert [one.name for one in others if build_fast(prebuilt_cache, kit, [one], tmp_path / one.name) is not None] == []
