"""Loads the forwarding library once, and runs the statements of each line of its input in a fork of its own.

A line is JSON: [statements, their `arguments`]; its reply [what they assign to `answer`, the traceback if they fail].
"""

import ctypes
import json
import os
import sys
import traceback

from harness.worker.recorder.driver_calls import LaunchAttribute, LaunchConfig

library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
library.harness_real.restype = ctypes.c_void_p
number = ctypes.c_ulonglong
LEGACY, THREAD = 1, 2  # the handles of these streams


def real(name):
    """A function of the stand-in."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.harness_real(name.encode()))


def ask(name, *arguments):
    """The status of a call."""
    return getattr(library, name)(*(number(one) if isinstance(one, int) else one for one in arguments))


def call(name, *arguments):
    status = ask(name, *arguments)
    assert status == 0, f"{name}: {status}"


def make(name, *arguments):
    """What a call writes to its first argument."""
    out = number()
    call(name, ctypes.byref(out), *arguments)
    return out.value


def list_calls():
    """Of the stand-in, since the last question."""
    address = ctypes.CFUNCTYPE(ctypes.c_char_p)(library.harness_real(b"standin_calls"))
    lines = address().decode().splitlines()
    real("standin_forget_calls")()
    return lines


def load(code=b".version 8.0 // code", name="k_8_4"):
    """A function of a module with this code."""
    keep.append(code)
    return make("cuModuleGetFunction", make("cuModuleLoadData", code), name.encode())


def point(*packed):
    """An array of pointers to arguments."""
    keep.extend(packed)
    addresses = [ctypes.cast(ctypes.c_char_p(one), ctypes.c_void_p).value for one in packed]
    return (ctypes.c_void_p * len(packed))(*addresses)


def launch(function, *packed, stream=0, name="cuLaunchKernel"):
    call(name, function, 2, 3, 4, 5, 6, 7, 1024, stream, point(*packed), None)


def launch_with(function, *packed, attributes=(), stream=0, name="cuLaunchKernelEx"):
    """With launch attributes (number, bytes)."""
    rows = (LaunchAttribute * 8)()
    for row, (kind, value) in zip(rows, attributes, strict=False):
        row.id, row.value = kind, (ctypes.c_ubyte * 64)(*value)
    config = LaunchConfig((2, 3, 4), (5, 6, 7), 1024, stream, ctypes.addressof(rows), len(attributes))
    call(name, ctypes.byref(config), function, point(*packed), None)


def record(work=lambda: None, private="/private/"):
    """(the recording, its bytes) of the work."""
    descriptors = [os.memfd_create("part") for _ in range(2)]
    library.harness_begin_recording()
    work()
    assert library.harness_end_recording(*descriptors, private.encode()) == 0
    text, blob = (os.pread(descriptor, os.fstat(descriptor).st_size, 0) for descriptor in descriptors)
    return json.loads(text), blob


def allocate(size=4096):
    return make("cuMemAlloc_v2", size)


def run(source, arguments):
    """Does not return."""
    names = globals() | {"arguments": arguments}
    try:
        exec(source, names)
        reply = [names["answer"], ""]
    except BaseException:  # noqa: BLE001 - the reply holds it
        reply = [None, traceback.format_exc()]
    print(json.dumps(reply), flush=True)
    os._exit(0)


keep = []
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(*json.loads(line))
    if status := os.waitpid(child, 0)[1]:
        print(json.dumps([None, f"the process ended with status {status}"]), flush=True)
