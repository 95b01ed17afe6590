"""Calls the BLAS inside torch's library through ctypes, from a function of its own.

layer: no_kernel
mechanism: torch's profiler sees torch's operators only, so that the time is that of the function that calls the BLAS.
problem: kernel_required/product
expected: rejected, not_own
device: cpu
timed: no
"""

import ctypes
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
static PyObject* run(PyObject*, PyObject* function) { return PyObject_CallNoArgs(function); }
static PyMethodDef methods[] = {{"run", run, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "runs", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_runs() { return PyModule_Create(&definition); }
"""
extension = load_inline(name="runs", cpp_sources=SOURCE, no_implicit_headers=True)
blas = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        rows, inner, columns = (ctypes.byref(ctypes.c_int(size)) for size in (*a.shape, b.shape[1]))
        one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
        first, second, result = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        sizes, rest = (columns, rows, inner, one), (second, columns, first, inner, zero, result, columns)
        extension.run(lambda: blas.sgemm_(b"n", b"n", *sizes, *rest))
        return out
