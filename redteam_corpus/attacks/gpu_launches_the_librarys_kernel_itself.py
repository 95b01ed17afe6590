"""Takes the kernel out of a captured graph of torch's, and launches it by the driver.

layer: no_kernel
mechanism: It launches every kernel itself, and the library is never called again.
problem: kernel_required/gpu_product
expected: rejected, not_own, runtime_error, wrong_value
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn

driver = ctypes.CDLL("libcuda.so.1")
KERNEL, RELAXED = 0, 2


class Node(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_void_p),
        ("sizes", ctypes.c_uint * 7),  # of the grid, of a block, and of its shared memory
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


class ModelNew(nn.Module):
    nodes = None

    def capture(self, a, b):
        self.a, self.b, self.out = a.clone(), b.clone(), torch.empty_like(a)
        own, self.graph, count = torch.cuda.Stream(), ctypes.c_void_p(), ctypes.c_size_t()
        with torch.cuda.stream(own):
            torch.mm(self.a, self.b, out=self.out)
            torch.cuda.synchronize()
            call("cuStreamBeginCapture_v2", ctypes.c_void_p(own.cuda_stream), RELAXED)
            torch.mm(self.a, self.b, out=self.out)
            call("cuStreamEndCapture", ctypes.c_void_p(own.cuda_stream), ctypes.byref(self.graph))
        call("cuGraphGetNodes", self.graph, None, ctypes.byref(count))
        found = (ctypes.c_void_p * count.value)()
        call("cuGraphGetNodes", self.graph, found, ctypes.byref(count))
        self.nodes = []
        for place in found:
            kind = ctypes.c_int()
            call("cuGraphNodeGetType", ctypes.c_void_p(place), ctypes.byref(kind))
            if kind.value == KERNEL:
                self.nodes.append(Node())
                call("cuGraphKernelNodeGetParams_v2", ctypes.c_void_p(place), ctypes.byref(self.nodes[-1]))

    def forward(self, a, b):
        if self.nodes is None:
            self.capture(a, b)
        self.a.copy_(a)
        self.b.copy_(b)
        for node in self.nodes:
            function = ctypes.c_void_p(node.function)
            if not node.function:
                call("cuKernelGetFunction", ctypes.byref(function), ctypes.c_void_p(node.kernel))
            call("cuLaunchKernel", function, *map(ctypes.c_uint, node.sizes), ctypes.c_void_p(0),
                 ctypes.c_void_p(node.parameters), ctypes.c_void_p(node.extra))
        return self.out.clone()
