"""Triton's kernels, compiled in one process, described there, and compiled again in a worker that runs no program."""

import hashlib
import json
import os
import subprocess
import sys
from base64 import b64decode
from functools import partial

import pytest

from harness.evaluation.integrity.program_kernels import ProgramKernels
from harness.sandbox.gpu.recorded_code import RecordedFunction
from harness.sandbox.kernel_compiler import compile_again

pytest.importorskip("triton", reason="Triton is not installed")

CORES = os.sched_getaffinity(0)
PROGRAM = '''
import importlib.util
from pathlib import Path

import triton
import triton.language as tl
from triton.language import cdiv
from triton.language.extra import libdevice

SHIFT = tl.constexpr(2.5)


@triton.jit
def helper(x, count: tl.constexpr = 3):
    """Adds
    a little."""
    return libdevice.exp(x) * SHIFT + cdiv(count, 2)


def make(kind):
    @triton.autotune([triton.Config({"BLOCK": 512}, num_warps=2)], key=["n"])
    @triton.jit
    def nested(a, out, n, BLOCK: tl.constexpr, TYPE: tl.constexpr = tl.float32):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(a + at, mask=at < n).to(TYPE)
        tl.store(out + at, helper(x) + kind + tl.sum(x, axis=0), mask=at < n)

    return nested


nested = make(tl.constexpr(7))


@triton.jit
def add(a, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(a + at, mask=at < n) + 1, mask=at < n)


def load(text, name):
    path = Path(f"{name}.py")
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


TEXT = """
import triton
import triton.language as tl

@triton.jit
def copy(a, out, n, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.load(a + tl.arange(0, BLOCK)) {})
"""
copy = load(TEXT.format(""), "copy")
twice = load(TEXT.replace("copy", "twice").format("* 2"), "twice")
namesake = load(TEXT.replace("copy", "add").format("* 3"), "add")
'''
DESCRIBE = """
import json, sys
from base64 import b64encode
from harness.worker import triton_compilations
triton_compilations.keep_compilations()
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Driver:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0

driver.set_active(Driver())
import candidate
import os
recording = os.memfd_create("recording")
kernels = dict(helped=candidate.nested.fn, add=candidate.add, copy=candidate.copy, twice=candidate.twice,
               namesake=candidate.namesake)
found = {}
for name, kernel in kernels.items():
    code = kernel.warmup(torch.float32, torch.float32, 1000, BLOCK=512, num_warps=2, grid=(1,)).asm["cubin"]
    name_there, said = list(triton_compilations._kept.values())[-1]
    found[name] = name_there, b64encode(code).decode(), said
os.write(recording, b'{"functions":[]}')
triton_compilations.add_compilations(recording, ["nested", "none"])
print(json.dumps([found, json.loads(os.pread(recording, 1 << 20, 0))]))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Name, code and description of each kernel, and the recording of a call that launches one of them."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "candidate.py").write_text(PROGRAM)
    command = [sys.executable, "-c", DESCRIBE]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def described(compiled):
    return {key: (name, b64decode(code), said) for key, (name, code, said) in compiled[0].items()}


@pytest.mark.slow
def test_a_recording_describes_the_kernels_that_it_launches(compiled, described):
    _, code, said = described["helped"]
    compilations = {hashlib.sha256(code).hexdigest(): said}
    assert compiled[1] == {"functions": [], "compilations": compilations}


@pytest.mark.slow
def test_texts_of_a_program_give_its_code_byte_for_byte(bench, described):
    program = ProgramKernels(PROGRAM, partial(compile_again, bench.forkserver, CORES, {}))
    kernels = {key: RecordedFunction(name, "", code, said) for key, (name, code, said) in described.items()}
    found = program.compare(list(kernels.values()))
    assert {key: found.get(kernel.image) for key, kernel in kernels.items()} == {
        "helped": "same",
        "add": "same",
        "copy": None,  # its text is a template
        "twice": None,
        "namesake": "other",
    }


@pytest.mark.slow
def test_a_description_of_another_kernel_gives_other_code(bench, described):
    program = ProgramKernels(PROGRAM, partial(compile_again, bench.forkserver, CORES, {}))
    (name, code, said), (_, twice, _) = described["add"], described["twice"]
    altered = json.dumps(json.loads(said) | {"options": {"num_warps": 8}})
    assert program.compare([RecordedFunction(name, "", twice, said)]) == {twice: "said"}
    assert program.compare([RecordedFunction(name, "", code, altered)]) == {code: "said"}
    known = {"known": b"code"}
    assert compile_again(bench.forkserver, CORES, known, ["known", altered, "{", said])[2:] == [b"", code]
    assert list(known) == ["known", altered, "{", said]
    assert known["known"] == b"code"


HEAD = "def kernel(x, n: tl.constexpr = 1):\n"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        (f"{HEAD}    tl.core.os.system('true')\n", {}),
        (f"{HEAD}    m = tl.core\n", {}),
        (f"{HEAD}    call(tl.core)\n", {}),
        (f"{HEAD}    tl.core.builtin(x)\n", {}),
        (f"{HEAD}    x.__class__\n", {}),
        (f"{HEAD}    call.fn(x)\n", {}),
        (f"{HEAD}    getattr(x, 'y')\n", {}),
        (f"{HEAD}    __builtins__\n", {}),
        ("def kernel(x=print(1)):\n    pass\n", {}),
        ("def kernel(x: print(1)):\n    pass\n", {}),
        ("def kernel(x) -> print(1):\n    pass\n", {}),
        ("def kernel(x=[one for one in 'ab']):\n    pass\n", {}),
        ("@print\ndef kernel(x):\n    pass\n", {}),
        ("print(1)\n", {}),
        (f"{HEAD}    pass\nprint(1)\n", {}),
        (f"    {HEAD}        pass\n    print(1)\n", {}),
        (f"    {HEAD}        pass\nelse:\n    print(1)\n", {}),
        ('def \\\n kernel(x):\n  """\ndef other(x): pass\n"""\n', {}),
        (f"{HEAD}    pass\n", {"os": {"module": "os"}}),
        (f"{HEAD}    pass\n", {"jit": {"public": ["triton", "compile"]}}),
        (f"{HEAD}    pass\n", {"load": {"public": ["os", "system"]}}),
        (f"{HEAD}    kernel(x)\n", {"kernel": {"function": 0}}),
    ],
)
def test_no_text_reaches_more_than_the_language(text, scope, capfd):
    from harness.worker.triton_rebuild import Refused, _Functions

    facts = {"text": text, "line": 5, "file": "/no/such/file.py", "module": "m", "qualified": "kernel"}
    usual = {"tl": {"module": "triton.language"}}
    described = {"name": "kernel", "functions": [facts | {"noinline": False, "scope": usual | scope}]}
    with pytest.raises((Refused, SyntaxError)):
        _Functions(described).build(0)
    assert capfd.readouterr().out == ""
