"""Both lanes make the same of every program of the corpus: the host code that is compiled, and the device's code.

The plain lane's front end reads all programs at once, each named by line markers; the fast lane's reads one at a time.
"""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from cuda_corpus import HEADERS, list_programs

from harness.build import probe_toolchain
from harness.build.fast import SCRIPT, read_plan, write_fast_steps
from harness.build.kit import IMPLICIT_HEADERS, KitMaker, lowering, preprocess, read_steps
from harness.build.kits import strip_name
from harness.build.plan import write_plan
from harness.build.regions import MISSING, split_regions
from harness.domain import BuildRequest

pytestmark = [pytest.mark.slow, pytest.mark.nvcc, pytest.mark.timeout(3600)]


def lower_plainly(kit, programs, folder, run):
    """Program name -> what the front end makes of it with torch's own headers."""
    write_together(programs, folder / "all.cu")
    run(preprocess(kit.steps["host_preprocess"], "all.cu", "all.ii"), folder)
    run(lowering(kit.steps["lower"], "all.ii", "all.cpp"), folder)
    found = {}
    for name, text in split_regions((folder / "all.cpp").read_text()):
        found[Path(name).stem] = found.get(Path(name).stem, "") + text
    return {program.name: normalise_host(found[program.name]) for program in programs}


def compile_device_plainly(kit, programs, folder, run):
    """Entry point -> its code, of all programs with torch's own headers."""
    write_together(programs, folder / "all.cu")
    run(preprocess(kit.steps["device_preprocess"], "all.cu", "cuda.cpp1.ii"), folder)
    words = list(kit.steps["device"])
    at = words.index("--module_id_file_name")
    del words[at : at + 2]
    run(words, folder)
    return read_entries((folder / "cuda.ptx").read_text())


def write_together(programs, path):
    first = len(IMPLICIT_HEADERS) + len(HEADERS) + 1
    parts = [f"#include <{header}>" for header in (*IMPLICIT_HEADERS, *HEADERS)]
    for program in programs:
        parts.append(f'# {first} "{program.name}.cu"\nnamespace {program.name} {{\n{program.body}\n}}')
    path.write_text("\n".join(parts) + "\n")


def build_fast(kit, program, folder):
    """(host code, entry points) of one program in the fast lane; None where it does not build there."""
    folder.mkdir()
    request = BuildRequest(name=program.name, cuda_sources=(program.source,))
    reason = write_fast_steps(kit, request, folder, main_command="true", link_command="true")
    assert reason is None
    if run_compiler(["sh", SCRIPT], folder)[0] != 0:
        return None
    own = "".join(
        text for name, text in split_regions((folder / "own.cpp").read_text()) if name == str(folder / "cuda.cu")
    )
    return normalise_host(own.partition("_NV_ANON_NAMESPACE")[0]), read_entries((folder / "cuda.ptx").read_text())


def normalise_host(text):
    """Without line markers, white space, names of files, and the pragmas that the front end puts first."""
    text = re.sub(r"^(# \d+.*|#pragma GCC diagnostic .*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r'"[^"\s]*\b(\w+)\.cu(\\?")', r'"source\2', text)
    text = text[text.find("namespace p") :]
    text = re.sub(r"\s+", "", re.sub(r"_GLOBAL__N__\w+", "unnamed", text))
    # A constant as a template argument is written by its name or by its value.
    text = re.sub(r"<c10::k([A-Z]\w*)>", r"<c10::ScalarType::\1>", text)
    return text.replace("::cudaLaunchKernel(0,0,0,0,0,0);", f"{MISSING}();")  # see harness.build.regions.keep_own


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
def kit(tmp_path_factory, module_environment):
    import torch

    toolchain = probe_toolchain()
    module_environment.setenv("CPLUS_INCLUDE_PATH", ":".join(toolchain.packaged_cuda_headers))
    include = Path(torch.__file__).parent / "include"
    folder = tmp_path_factory.mktemp("kit")
    write_plan(BuildRequest(name="p", cpp_sources=("",), cuda_sources=("",)), folder, "9.0")
    plan = read_plan(folder)
    flags = shlex.split(f"{strip_name(plan['cuda_cflags'])} {plan['cuda_post_cflags']}")
    dry_run = run_compiler([plan["nvcc"], "--dryrun", *flags, "-c", "cuda.cu", "-o", "cuda.cuda.o"], folder)[1]
    return KitMaker(folder, read_steps(dry_run), include, run_compiler).make()


@pytest.fixture(scope="module")
def module_environment():
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


def test_both_lanes_make_the_same_of_every_program(kit, tmp_path):
    programs = list_programs()
    host = lower_plainly(kit, programs, tmp_path, run_checked)
    device = compile_device_plainly(kit, programs, tmp_path, run_checked)
    unfit = []
    for program in programs:
        built = build_fast(kit, program, tmp_path / program.name)
        if built is None:
            unfit.append(program.name)
            continue
        own_host, own_device = built
        assert own_host == host[program.name]
        assert own_device == {name: code for name, code in device.items() if name in own_device}
        assert own_device, "a program without a kernel shows nothing"
    assert len(unfit) <= len(programs) // 20, f"the fast lane is to build nearly all; not {unfit}"
