"""Lets torch multiply in another thread, and waits in a function of its own until that has ended.

layer: no_kernel
mechanism: A profile of the calling thread shows its own function only, all of the time.
problem: kernel_required/product
expected: rejected, not_own
device: cpu
timed: no
"""

import ctypes
import threading

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
#include <unistd.h>
static PyObject* wait_and_copy(PyObject*, PyObject* args) {
    unsigned long long done, from, to, count;
    if (!PyArg_ParseTuple(args, "KKKK", &done, &from, &to, &count)) return nullptr;
    Py_BEGIN_ALLOW_THREADS
    while (!*(const volatile int*)done) usleep(20);
    for (unsigned long long i = 0; i < count; ++i) ((float*)to)[i] = ((const float*)from)[i];
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"wait_and_copy", wait_and_copy, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "waits", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_waits() { return PyModule_Create(&definition); }
"""
extension = load_inline(name="waits", cpp_sources=SOURCE, no_implicit_headers=True)
asked, done, work = threading.Semaphore(0), ctypes.c_int(0), []


def multiply():
    while True:
        asked.acquire()
        with torch.no_grad():
            a, b, product = work.pop()
            torch.mm(a, b, out=product)
        done.value = 1


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        threading.Thread(target=multiply, daemon=True).start()

    def forward(self, a, b):
        product, out = torch.empty(a.shape[0], b.shape[1]), torch.empty(a.shape[0], b.shape[1])
        done.value = 0
        work.append((a, b, product))
        asked.release()
        extension.wait_and_copy(ctypes.addressof(done), product.data_ptr(), out.data_ptr(), out.numel())
        return out
