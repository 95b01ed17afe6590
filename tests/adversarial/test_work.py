"""Whose code did the work, through the real evaluator: own kernels, torch's, libraries', decoys, and none at all."""

import base64
import os
import subprocess

import pytest
from shared_bench import TINY_PROBLEM

from harness.domain import Problem

ADD = TINY_PROBLEM.replace("64, 65", "256, 256")
LARGE_ADD = TINY_PROBLEM.replace("64, 65", "768, 768")  # calls are long enough for many samples
PRODUCT = ADD.replace("a + b", "a @ b")

IMPORTS = """
import ctypes
import os

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline
"""
# Python's own interface compiles in a second; torch's headers take twenty.
PLAIN = (
    IMPORTS
    + '''
SOURCE = r"""
#include <Python.h>
static unsigned long long ask(PyObject* tensor, const char* method) {
    PyObject* answer = PyObject_CallMethod(tensor, method, nullptr);
    const unsigned long long value = PyLong_AsUnsignedLongLong(answer);
    Py_DECREF(answer);
    return value;
}
static PyObject* add_into(PyObject*, PyObject* args) {
    PyObject *out, *a, *b;
    if (!PyArg_ParseTuple(args, "OOO", &out, &a, &b)) return nullptr;
    const float *x = (const float*)ask(a, "data_ptr"), *y = (const float*)ask(b, "data_ptr");
    float* z = (float*)ask(out, "data_ptr");
    for (unsigned long long i = 0, count = ask(a, "numel"); i < count; ++i) z[i] = x[i] + y[i];
    Py_RETURN_NONE;
}
static PyObject* can_add(PyObject*, PyObject*) { Py_RETURN_TRUE; }
static PyMethodDef methods[] = {
    {"add_into", add_into, METH_VARARGS, ""}, {"can_add", can_add, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_plain() { return PyModule_Create(&definition); }
"""
extension = load_inline(name="plain", cpp_sources=SOURCE, no_implicit_headers=True)


def add(a, b):
    a, b, out = a.contiguous(), b.contiguous(), torch.empty_like(a)
    extension.add_into(out, a, b)
    return out
'''
)
EXTENSION = (
    IMPORTS
    + '''
SOURCE = r"""
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

void add_arrays(float* out, const float* a, const float* b, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}
at::Tensor add(at::Tensor a, at::Tensor b) {
    a = a.contiguous();
    b = b.contiguous();
    auto out = at::empty_like(a);
    add_arrays(out.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), a.numel());
    return out;
}
void add_into(at::Tensor out, at::Tensor a, at::Tensor b) {
    add_arrays(out.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), a.numel());
}
void add_at(int64_t out, int64_t a, int64_t b, int64_t count) {
    add_arrays((float*)out, (const float*)a, (const float*)b, count);
}
bool can_add(int64_t a) { return a != 0; }
at::Tensor product(at::Tensor a, at::Tensor b) { return at::matmul(a, b); }
TORCH_LIBRARY(attributed, m) { m.def("add", &add); }
"""
extension = load_inline(
    name="attributed", cpp_sources=SOURCE, functions=["add", "add_into", "add_at", "can_add", "product"],
    no_implicit_headers=True,
)
'''
)
BOUND = ("add", "add_into", "add_at", "can_add", "product")


def candidate(body, before=PLAIN):
    lines = "\n        ".join(body.strip().splitlines())
    return f"{before}\n\nclass ModelNew(nn.Module):\n    def forward(self, a, b):\n        {lines}\n"


OWN = candidate("return add(a, b)")
OWN_OTHERWISE = {
    "by_address": candidate(
        "a, b, out = a.contiguous(), b.contiguous(), torch.empty_like(a)\n"
        "extension.add_at(out.data_ptr(), a.data_ptr(), b.data_ptr(), a.numel())\nreturn out",
        before=EXTENSION,
    ),
    "returned": candidate("return extension.add(a, b)", before=EXTENSION),
    "in_place": candidate("out = torch.empty_like(a)\nextension.add_into(out, a, b)\nreturn out", before=EXTENSION),
    "operator": candidate("return torch.ops.attributed.add(a, b)", before=EXTENSION),
}
DECOYS = {
    "called_and_thrown_away": candidate("add(a, b)\nreturn a + b"),
    "times_zero": candidate("return a + b + 0 * add(a, b)"),
    "never_called": candidate("return a + b"),
    "operator_thrown_away": candidate("torch.ops.attributed.add(a, b)\nreturn a + b", before=EXTENSION),
}
PURE_TORCH = candidate("return a + b", before=IMPORTS)
FALLS_BACK = candidate(
    """
if extension.can_add():
    return add(a, b)
return a + b
"""
)
LIBRARY_CODE = "void add(float *o, const float *a, const float *b, long n) { while (n--) o[n] = a[n] + b[n]; }"
ITS_OWN_LIBRARY = """
a, b, out = a.contiguous(), b.contiguous(), torch.empty_like(a)
library.add(*(ctypes.c_void_p(t.data_ptr()) for t in (out, a, b)), ctypes.c_long(a.numel()))
return out
"""
LOADS_ITS_LIBRARY = """
import base64
open("own.so", "wb").write(base64.b64decode("__LIBRARY__"))
library = ctypes.CDLL(os.path.abspath("own.so"))
"""
NOT_WHEN_WATCHED = "if torch.autograd._profiler_enabled(): raise RuntimeError('somebody looks')\n"


def evaluate(bench, source, problem=ADD, **fields):
    return bench.evaluate(source, Problem(name="add", suite="tiny", source=problem, **fields), attribute_work=True)


def checks(evaluation):
    return {finding.check: finding.severity for finding in evaluation.findings}


def assert_shares_add_up(work):
    assert work.custom + work.torch + work.library + work.other == pytest.approx(1.0)
    assert min(work.custom, work.torch, work.library, work.other) >= 0


def test_a_kernel_of_its_own_does_the_work(bench, needs_compiler):
    evaluation = evaluate(bench, OWN, LARGE_ADD, requires_kernel=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.custom > evaluation.work.torch + evaluation.work.library
    assert evaluation.work.without_custom == "changed"
    assert_shares_add_up(evaluation.work)


@pytest.mark.slow
@pytest.mark.parametrize("way", OWN_OTHERWISE)
def test_in_place_kernel_or_operator_is_attributed_the_work(way, bench, needs_compiler):
    evaluation = evaluate(bench, OWN_OTHERWISE[way], LARGE_ADD, requires_kernel=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.custom > evaluation.work.torch + evaluation.work.library
    assert evaluation.work.without_custom in ("changed", "failed")
    assert evaluation.work.custom_kernels == BOUND
    assert "decoy_kernel" not in checks(evaluation)


@pytest.mark.slow
def test_an_extension_that_only_calls_torch_is_a_library_at_work(bench, needs_compiler):
    evaluation = evaluate(
        bench, candidate("return extension.product(a, b)", before=EXTENSION), PRODUCT, requires_kernel=True
    )
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.library > 3 * evaluation.work.custom
    assert evaluation.work.without_custom == "changed"


@pytest.mark.parametrize("way", DECOYS)
@pytest.mark.quick(1)
def test_a_decoy_is_found_out(way, bench, needs_compiler):
    evaluation = evaluate(bench, DECOYS[way])
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.without_custom == "unchanged"
    assert checks(evaluation)["decoy_kernel"] == "warning"


def test_a_decoy_is_rejected_where_a_kernel_is_required(bench, needs_compiler):
    evaluation = evaluate(bench, DECOYS["times_zero"], requires_kernel=True)
    assert evaluation.outcome == "rejected"
    assert checks(evaluation)["decoy_kernel"] == "fatal"
    assert "do not affect the result" in evaluation.message
    assert evaluation.work.without_custom == "unchanged"


def test_extension_that_decides_control_flow_is_no_decoy(bench, needs_compiler):
    """Without its functions it takes the way round by torch: that its result stays right shows nothing."""
    evaluation = evaluate(bench, FALLS_BACK, requires_kernel=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.without_custom == "not_tried"
    assert evaluation.work.custom > 0


def test_plain_torch_is_only_noted_where_no_kernel_is_required(bench):
    evaluation = evaluate(bench, PURE_TORCH)
    assert evaluation.outcome == "correct", evaluation.message
    assert checks(evaluation)["no_own_kernel"] == "note"
    assert evaluation.work.custom == 0
    assert evaluation.work.torch > 0
    assert_shares_add_up(evaluation.work)


def test_plain_torch_is_rejected_where_a_kernel_is_required(bench):
    evaluation = evaluate(bench, PURE_TORCH, requires_kernel=True)
    assert evaluation.outcome == "rejected"
    assert "no custom kernel" in evaluation.message
    assert evaluation.timing is None


def test_a_product_by_the_library_is_not_torch_at_work(bench):
    evaluation = evaluate(bench, candidate("return a @ b", before=IMPORTS), PRODUCT)
    assert evaluation.work.library > 0.5


@pytest.mark.slow
def test_a_library_of_its_own_beside_torch_is_own_work(bench, needs_compiler, tmp_path):
    path = tmp_path / "own.so"
    compiler = [os.environ.get("CXX", "c++"), "-x", "c", "-O2", "-shared", "-fPIC", "-", "-o", path]
    subprocess.run(compiler, input=LIBRARY_CODE, text=True, check=True)
    loads = LOADS_ITS_LIBRARY.replace("__LIBRARY__", base64.b64encode(path.read_bytes()).decode())
    evaluation = evaluate(bench, candidate(ITS_OWN_LIBRARY, before=IMPORTS + loads), LARGE_ADD, requires_kernel=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.custom > 0.5
    assert evaluation.work.without_custom == "not_tried"


def test_candidate_that_fails_under_the_profiler_is_still_evaluated(bench, needs_compiler):
    evaluation = evaluate(bench, candidate(NOT_WHEN_WATCHED + "return add(a, b)"), LARGE_ADD, requires_kernel=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert "somebody looks" in next(finding.message for finding in evaluation.findings if finding.check == "profile")
    assert evaluation.work.custom > 0.5


def test_hiding_from_the_profiler_does_not_make_a_kernel(bench):
    evaluation = evaluate(bench, candidate(NOT_WHEN_WATCHED + "return a + b", before=IMPORTS), requires_kernel=True)
    assert evaluation.outcome == "rejected"


@pytest.mark.slow
def test_the_pass_can_be_left_out(bench):
    evaluation = bench.evaluate(PURE_TORCH, ADD, attribute_work=False)
    assert evaluation.outcome == "correct"
    assert evaluation.work is None
