"""What candidates may ask for, the whole way: own headers, builds in forward, one name for two extensions; and what a
user may ask of the cache."""

import os

import pytest

pytestmark = pytest.mark.usefixtures("needs_compiler")

# A module without torch's headers builds in half a second; it is handed addresses.
CANDIDATE = '''
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load, load_inline

SOURCE = """
#include <Python.h>
#include "add.h"
static PyObject* run(PyObject*, PyObject* args) {
    long long a, b, c; long n;
    if (!PyArg_ParseTuple(args, "LLLl", &a, &b, &c, &n)) return nullptr;
    for (long i = 0; i < n; ++i) ((float*)c)[i] = STEP(((float*)a)[i], ((float*)b)[i]);
    Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"run", run, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "ext", "", -1, methods};
#define NAME_INIT(name) PyInit_##name
#define INIT(name) NAME_INIT(name)
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""


def write(folder, text):
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / "add.h").write_text(text)


def build_inline(folder, text):
    write(folder, text)
    return load_inline("ext", SOURCE, no_implicit_headers=True, extra_include_paths=[folder])


def build_from_file(folder, text):
    write(folder, text)
    (Path(folder) / "ext.cpp").write_text(SOURCE)
    return load("ext", [folder + "/ext.cpp"])


def call(module, a, b):
    c = torch.empty_like(a)
    module.run(a.data_ptr(), b.data_ptr(), c.data_ptr(), a.numel())
    return c


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.add = None
        BODY_INIT

    def forward(self, a, b):
        BODY_FORWARD
'''
ADD = '"#define STEP(a, b) ((a) + (b))"'
KEEP = '"#define STEP(a, b) (a)"'


def write_candidate(init, *forward):
    body = "\n        ".join(forward)
    return CANDIDATE.replace("BODY_INIT", init).replace("BODY_FORWARD", body)


# The problem is a + b.
@pytest.mark.parametrize(
    "source",
    [
        write_candidate(
            "pass",
            f'if self.add is None: self.add = build_inline("own", {ADD})',
            "return call(self.add, a, b)",
        ),
        write_candidate(
            f'self.add, self.keep = build_inline("own", {ADD}), build_inline("own", {KEEP})',
            "return call(self.keep, call(self.add, a, b), b)",
        ),
        write_candidate(f'self.add = build_from_file("own", {ADD})', "return call(self.add, a, b)"),
    ],
    ids=["at_first_forward", "two_of_one_name", "load"],
)
@pytest.mark.quick(1)
def test_a_candidate_with_its_own_headers_is_correct(bench, source):
    evaluation = bench.evaluate(source)
    assert (evaluation.outcome.value, evaluation.message) == ("correct", "")


def test_a_keyword_for_what_is_not_built_is_named_in_the_verdict(bench):
    source = write_candidate('load_inline("ext", SOURCE, sycl_sources="void f();")', "return a + b")
    evaluation = bench.evaluate(source)
    assert evaluation.outcome.value != "correct"
    assert "sycl_sources='void f();' is not supported" in evaluation.message


@pytest.mark.slow
def test_the_cache_keeps_within_the_size_that_evaluate_was_given(call_harness, tiny_suite, tmp_path):
    cache = tmp_path / "own-cache"
    old = cache / "ab" / ("ab" + "0" * 62)
    old.mkdir(parents=True)
    (old / "library.so").write_bytes(b"x" * 4096)
    os.utime(old, (0, 0))
    (tmp_path / "candidate.py").write_text(
        write_candidate(f'self.add = build_inline("own", {ADD})', "return call(self.add, a, b)")
    )
    command = ["evaluate", "--candidate", "candidate.py", "--problem", "add", "--suite", "tiny", "--no-time"]
    command += ["--device", "cpu", "--problems-dir", tiny_suite.parent]
    finished = call_harness([*command, "--cache-size", "1", "--cache-dir", cache])
    assert finished.returncode == 0, finished.stderr
    assert not old.exists()
    assert len(list(cache.glob("[0-9a-f][0-9a-f]/*/library.so"))) == 1, "what is in use stays"


def test_a_cache_size_that_is_none_is_refused_before_anything_is_evaluated(call_harness):
    finished = call_harness(["evaluate", "--cache-size", "lots"])
    assert finished.returncode == 2
    assert "--cache-size or HARNESS_CACHE_SIZE: expected a size such as 20G" in finished.stderr
