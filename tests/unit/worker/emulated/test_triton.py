"""Triton as the emulated device uses it: values as on a GPU, planted bugs and refused kernels named, no false alarm.

The programs are those of `tests/emulated/corpus`, run without the evaluator: one process that has imported torch and
Triton, and a fork of it for each program. Another version than torch's: `pip install --no-deps --target FOLDER
triton==VERSION`, then run with PYTHONPATH=FOLDER.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("triton") is None:
    pytest.skip("the emulated device runs Triton kernels in Triton's own interpreter", allow_module_level=True)

CORPUS = Path(__file__).resolve().parents[3] / "emulated" / "corpus"
SCRIPT = """
import ast, importlib.util, json, os, sys
from pathlib import Path
import torch
import harness.worker.emulated.triton.preloaded  # as in the forkserver
from harness.worker.emulated.cuda import install as install_cuda
from harness.worker.emulated.link import EmulatorLink
from harness.worker.languages.triton import emulate

mode, (major, minor), names = sys.argv[1], map(int, sys.argv[2].split(".")), sys.argv[3:]
target = {"name": "NVIDIA A100", "major": major, "minor": minor, "total_memory": 1 << 30, "multi_processor_count": 108,
          "warp_size": 32, "max_threads_per_block": 1024, "regs_per_multiprocessor": 65536,
          "shared_memory_per_block_optin": 166912, "clock_rate": 1410000}
install_cuda(target)
link = EmulatorLink()
compiles = mode == "compile"
emulate(link, target, compiles=compiles)

def field(text, name):
    lines = ast.get_docstring(ast.parse(text)).splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith(name + ": ")), "")

def flat(value):
    return [one for each in value for one in flat(each)] if isinstance(value, tuple) else [value]

def run(path):
    text = path.read_text()
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(1)
    inputs = eval("dict(" + field(text, "inputs") + ")")
    expected = flat(eval(field(text, "forward"), {"torch": torch, **inputs}))
    found = []
    if compiles:
        try:
            module.ModelNew()(*(one.cuda() for one in inputs.values()))
        except Exception as error:
            found.append(type(error).__name__)
        return found + [one["check"] + ":" + str(one["line"]) + ":" + one["message"] for one in link.take_findings()]
    for order in ("ascending", "descending", "random"):
        link.configure({"order": order, "seed": 3, "time_limit_s": 20.0})
        try:
            outputs = flat(module.ModelNew()(*(one.cuda() for one in inputs.values())))
            limits = {2: {"rtol": 2e-2, "atol": 5e-2}}
            right = all(torch.allclose(a.cpu().double(), b.double(), **limits.get(b.dtype.itemsize, {"rtol": 1e-4,
                                       "atol": 1e-4})) for a, b in zip(outputs, expected, strict=True))
            found += [] if right else ["wrong:" + order]
        except RuntimeError as error:
            found.append(type(error).__name__)
        found += [one["check"] + ":" + str(one["line"]) + ":" + one["message"] for one in link.take_findings()]
    return found

for name in names:
    sys.stdout.flush()
    if os.fork() == 0:
        try:
            answer = run(Path(name))
        except BaseException as error:
            answer = ["raised " + repr(error)]
        print(json.dumps([Path(name).stem, answer]), flush=True)
        os._exit(0)
    os.wait()
"""


def run_programs(*paths, mode="interpret", capability="8.0"):
    """Findings by program, each as `check:line:message`."""
    command = [sys.executable, "-c", SCRIPT, mode, capability, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


GOOD = [path for path in sorted((CORPUS / "good").glob("triton_*.py")) if path.stem != "triton_with_cuda"]
BUGS = sorted((CORPUS / "bugs").glob("triton_*.py"))


PARTS = 10


@pytest.mark.quick(1)
@pytest.mark.parametrize("part", range(PARTS))
def test_correct_programs_have_no_finding_and_planted_bugs_are_named(part):
    good, bugs = GOOD[part::PARTS], BUGS[part::PARTS]
    found = run_programs(*good, *bugs)  # with right values in every order
    assert {path.stem: found[path.stem] for path in good if found[path.stem]} == {}
    assert {path.stem: found[path.stem] for path in bugs if not is_named(path, found[path.stem])} == {}
    assert len(good) >= 2 and bugs


def is_named(path, found):
    """A finding of the kind that the header names, or for `order` a value that only another order changes."""
    finding = next(line.partition(": ")[2] for line in path.read_text().splitlines() if line.startswith("finding: "))
    if finding == "order":
        return "wrong:ascending" not in found and "wrong:descending" in found
    return any(one.startswith(f"{finding}:") and not one.startswith(f"{finding}:0:") for one in found)


@pytest.mark.slow
def test_refused_kernels_are_named_with_line_and_source_and_others_are_compiled():
    names = (
        "undefined_name", "type_error", "accepted_by_the_interpreter", "unknown_option", "too_much_shared",
        "block_in_a_separate_function",
    )  # fmt: skip
    bad = run_programs(*(CORPUS / "bad" / f"triton_{name}.py" for name in names), mode="compile")
    good = run_programs(*(CORPUS / "good" / f"triton_{name}.py" for name in ("softmax", "autotuned")), mode="compile")
    assert "compile_error:17:" in bad["triton_undefined_name"][1] and "+ offset" in bad["triton_undefined_name"][1]
    assert "compile_error:17:" in bad["triton_type_error"][1]
    assert "compile_error:17:" in bad["triton_accepted_by_the_interpreter"][1]
    assert "compile_error:23:" in bad["triton_block_in_a_separate_function"][1]
    assert "num_threads" in bad["triton_unknown_option"][1]
    assert bad["triton_too_much_shared"][0] == "OutOfResources"
    assert "bytes of shared memory; NVIDIA A100 has 166912 per block" in bad["triton_too_much_shared"][1]
    assert [one.partition(":")[0] for one in good["triton_softmax"] + good["triton_autotuned"]] == ["compiled"] * 2


@pytest.mark.slow
def test_an_error_that_the_compiler_only_prints_is_named():
    path = CORPUS / "bad" / "triton_integers_on_turing.py"
    error, finding = run_programs(path, mode="compile", capability="7.5")[path.stem]
    assert error == "RuntimeError" and finding.startswith("compile_error:20:'arith.extf' op operand #0 must be")
    assert "tl.dot(left, right)" in finding
    assert run_programs(path, mode="compile")[path.stem][0].startswith("compiled:")
