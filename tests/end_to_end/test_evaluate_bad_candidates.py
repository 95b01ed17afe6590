"""Candidates that break in every way there is, evaluated in one go by the real command: each gets its own clear
verdict, those around them are evaluated as if nothing had happened, and nothing is left running."""

import json
import re
from dataclasses import asdict
from types import SimpleNamespace

import pytest

HEAD = "import os, sys, time, torch\nfrom torch import nn\n"
LEFT_OVER_S = "98761.25"


def module(body, init=""):
    """A candidate whose forward is `body` and whose constructor has the extra line `init`."""
    constructor = f"    def __init__(self):\n        super().__init__()\n        {init}\n" if init else ""
    indented = body.replace("\n", "\n        ")
    return f"{HEAD}class ModelNew(nn.Module):\n{constructor}    def forward(self, a, b):\n        {indented}\n"


PLAIN_C = r"""
#include <Python.h>
static PyObject* add(PyObject*, PyObject* args) {
  unsigned long long a, b, c; Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "KKKn", &a, &b, &c, &n)) return nullptr;
  const float *x = (const float*)a, *y = (const float*)b; float* z = (float*)c;
  for (Py_ssize_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"add", add, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain_add", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_plain_add() { return PyModule_Create(&definition); }
"""


def compiled(source, flags="[]"):
    return f"""{HEAD}from torch.utils.cpp_extension import load_inline
ext = load_inline("plain_add", cpp_sources={source!r}, extra_cflags={flags}, no_implicit_headers=True)
class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        ext.add(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel())
        return out
"""


# name: (candidate, expected outcome, what the message must say)
ZOO = {
    "no_code": (None, "no_code", "ModelNew"),
    "syntax_error": ("class ModelNew(:\n", "load_error", r"SyntaxError: .*line 1"),
    "no_entry": (f"{HEAD}class Model(nn.Module):\n    pass\n", "load_error", "no class ModelNew"),
    "lazy_weights": (
        f"{HEAD}class ModelNew(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.linear = nn.LazyLinear(3)\n    def forward(self, a, b):\n        return self.linear(a)\n",
        "load_error",
        r"linear\.weight, linear\.bias have no shape until the first call",
    ),
    "raises_on_import": (
        f"{HEAD}class ModelNew(nn.Module):\n    pass\nraise RuntimeError('not today')\n",
        "load_error",
        "RuntimeError: not today",
    ),
    "missing_package": (
        module("import no_such_package"),
        "runtime_error",
        "it imports no_such_package, which is not installed on this machine",
    ),
    "other_constructor": (
        f"{HEAD}class ModelNew(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n",
        "load_error",
        "missing 1 required positional argument: 'size'",
    ),
    "prints_megabytes": (module("for _ in range(30): print('x' * 100000)\nreturn a + b"), "correct", ""),
    "sys_exit": (module("sys.exit(0)"), "runtime_error", "SystemExit"),
    "os_exit": (module("print('bye', flush=True)\nos._exit(0)"), "runtime_error", "exited with code 0.*bye"),
    "hangs_in_python": (module("while True: time.sleep(0.01)"), "timeout", r"not return within 3 s.*, in line \d+ of"),
    "hangs_with_the_lock_held": (module("import ctypes; ctypes.PyDLL(None).pause()"), "timeout", "within 3 s"),
    "segfault": (
        module("import ctypes; ctypes.string_at(0)"),
        "runtime_error",
        r"SIGSEGV during call, in line \d+ of the candidate \(forward\)$",
    ),
    "kills_itself": (module("os.kill(os.getpid(), 9)"), "runtime_error", "ended by SIGKILL during call"),
    "leaves_children": (
        module(f"import subprocess as s\ns.Popen(['sleep', '{LEFT_OVER_S}'], start_new_session=True)\nreturn a + b"),
        "correct",
        "",
    ),
    "fills_its_disk": (
        module("with open('big', 'wb') as f: os.posix_fallocate(f.fileno(), 0, 1 << 44)"),
        "runtime_error",
        "OSError.*(No space left|File too large)",
    ),
    "fills_its_memory": (
        module("kept = []\nwhile True: kept.append(torch.empty(1 << 28))"),
        "out_of_memory",
        "can't allocate memory",
    ),
    "raises_in_forward": (module("raise ValueError('no \\ud800 such \\x1b[31m thing')"), "runtime_error", "ValueError"),
    "tuple": (module("return (a + b,)"), "wrong_shape", "expected tensor, found tuple of"),
    "none": (module("return None"), "wrong_shape", "expected tensor, found None"),
    "number": (module("return 1.5"), "wrong_shape", "expected tensor, found 1.5"),
    "object": (module("return object()"), "wrong_shape", "output 0: expected a tensor, found object"),
    "wrong_shape": (module("return (a + b).sum(0)"), "wrong_shape", r"expected shape \(64, 65\), found \(65,\)"),
    "wrong_dtype": (module("return (a + b).double()"), "wrong_dtype", "expected torch.float32, found torch.float64"),
    "wrong_value": (module("return a - b"), "wrong_value", "of 4160 elements wrong"),
    "empty_flag": (compiled(PLAIN_C, '[""]'), "correct", ""),
    "refused_flag": (compiled(PLAIN_C, '["-fplugin=./x.so"]'), "rejected", "-fplugin=./x.so' is refused"),
    "broken_build": (
        compiled('#include <Python.h>\nint broken() {\n  return missing_name;\n}\n'),
        "build_error",
        r"main.cpp:\d+:\d+: error: .missing_name. was not declared",
    ),
    "cuda_in_a_cpp_run": (
        f"{HEAD}from torch.utils.cpp_extension import load_inline\n"
        'load_inline("k", cpp_sources="int f();", cuda_sources="__global__ void k() {}", functions=["f"])\n'
        "class ModelNew(nn.Module):\n    pass\n",
        "rejected",
        "'k' has CUDA sources, and the candidate is to be written in cpp",
    ),
    "good_last": (module("return torch.add(a, b)"), "correct", ""),
}  # fmt: skip
NAMES = list(ZOO)


@pytest.fixture
def zoo(once, tiny_suite, write_run, call_harness, processes_with, needs_compiler):
    """What one command that evaluates the whole zoo printed and left, and the same one again."""

    def evaluate():
        write_run("zoo", [source for source, _, _ in ZOO.values()])
        args = ["evaluate", "zoo", "--problems-dir", tiny_suite.parent, "--no-time", "--call-timeout", 3]
        first = call_harness(args)
        left = processes_with(LEFT_OVER_S)
        second = call_harness([*args, "--json"])
        shown = call_harness(["show", f"zoo/add/{NAMES.index('broken_build')}"])
        return {"first": asdict(first), "left": left, "second": asdict(second), "shown": shown.stdout}

    evaluated = once("zoo", evaluate)
    rows = [json.loads(line) for line in evaluated["second"]["stdout"].splitlines()]
    return SimpleNamespace(
        first=SimpleNamespace(**evaluated["first"]),
        second=SimpleNamespace(**evaluated["second"]),
        left=evaluated["left"],
        shown=evaluated["shown"],
        rows={row["sample"]: row for row in rows},
    )


def test_the_whole_zoo_is_evaluated_and_the_command_ends_well(zoo):
    assert zoo.first.returncode == 0, zoo.first.stderr
    assert set(zoo.rows) == set(range(len(ZOO)))
    assert "Traceback" not in zoo.first.stderr


@pytest.mark.parametrize("name", NAMES)
def test_each_gets_its_own_verdict_and_says_why(zoo, name):
    _, outcome, words = ZOO[name]
    row = zoo.rows[NAMES.index(name)]
    assert row["outcome"] == outcome, row["message"]
    assert re.search(words, row["message"], re.DOTALL), row["message"]


def test_no_process_of_a_candidate_is_left(zoo):
    assert zoo.left == []


def test_a_second_evaluate_evaluates_nothing_and_says_so(zoo):
    assert zoo.second.returncode == 0
    assert len([json.loads(line) for line in zoo.second.stdout.splitlines()]) == len(ZOO)
    assert "evaluating" not in zoo.second.stderr


def test_every_outcome_is_in_the_table_that_the_user_sees(zoo):
    for outcome in {outcome for _, outcome, _ in ZOO.values()}:
        assert outcome in zoo.first.stdout
    assert all(len(line) <= 80 for line in zoo.first.stdout.splitlines())


def test_a_broken_build_shows_file_line_and_message(zoo):
    assert re.search(r"main\.cpp:\d+:\d+: error: .missing_name.", zoo.shown)


NATIVE = r"""
#include <torch/extension.h>
static float read(const float* p, int64_t i) { return p[i]; }
__attribute__((noinline)) void fill(float* c, const float* a, int64_t n) {
  for (volatile int64_t i = 0; i < n; i = i + STEP) { c[0] += read(a, i << 20); }
}
torch::Tensor add(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  fill(c.data_ptr<float>(), a.data_ptr<float>(), a.numel() << 20);
  return c;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("step", "outcome"), [("1", "runtime_error"), ("0", "timeout")])
def test_a_crash_or_time_out_in_an_extension_names_its_function(step, outcome, open_bench, needs_compiler):
    source = f"""{HEAD}from torch.utils.cpp_extension import load_inline
ext = load_inline("crash", cpp_sources={NATIVE.replace("STEP", step)!r}, functions=["add"])
class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.add(a, b)
"""
    evaluation = open_bench(call_s=3.0).evaluate(source)
    assert evaluation.outcome == outcome, evaluation.message
    assert re.search(r", in function fill, in line \d+ of the candidate \(forward\)", evaluation.message)
