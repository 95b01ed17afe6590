"""Disables the records of torch's operators before they are called by a function of its own.

layer: no_kernel
mechanism: torch's profiler learns of operators by callbacks that every program may disable.
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
torchs = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


class ModelNew(nn.Module):
    def forward(self, a, b):
        def multiply():
            torchs._ZN2at20enableRecordFunctionEb(False)
            out = a @ b
            torchs._ZN2at20enableRecordFunctionEb(True)
            return out

        return extension.run(multiply)
