"""Lets numpy multiply, called by a function of its own.

layer: no_kernel
mechanism: torch's profiler does not see numpy, so that the time is that of the function that calls it.
problem: kernel_required/product
expected: rejected, not_own
device: cpu
timed: no
"""

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


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.run(lambda: torch.from_numpy(a.numpy() @ b.numpy()))
