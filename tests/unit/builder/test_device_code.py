"""Which device code of a library nvcc made of its sources."""

import os
import struct
from pathlib import Path

import pytest

from harness.builder.builder import Builder
from harness.builder.cache import digest_code, list_device_code
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest

pytestmark = [pytest.mark.slow, pytest.mark.nvcc]
MAGIC = struct.pack("<I", 0xBA55ED50)
KERNEL = "__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }\n"
RUN = 'extern "C" void run(float* x) { scale<<<1, 32>>>(x); }\n'
PLACED = r"""asm(".section .nv_fatbin,\"a\"\n.balign 8\n.long 0xBA55ED50\n.short 1, 16\n.quad 8, 7\n.previous");"""
BINDING = "void run(torch::Tensor x);"
BOUND = "void run(torch::Tensor x) { scale<<<1, 32>>>(x.data_ptr<float>()); }\n"
PARTS = (("one.cu", KERNEL + RUN), ("two.cu", KERNEL.replace("scale", "again")))
PLAIN = {"no_implicit_headers": True, "is_python_module": False}
REQUESTS = {
    "plain": BuildRequest(name="plain", cuda_sources=(KERNEL + RUN,), **PLAIN),
    "placed by a host source": BuildRequest(name="host", cpp_sources=(PLACED,), cuda_sources=(KERNEL + RUN,), **PLAIN),
    "placed by a CUDA source": BuildRequest(name="cuda", cuda_sources=(KERNEL + RUN + PLACED,), **PLAIN),
    "several": BuildRequest(name="several", files=PARTS, is_python_module=False),
    "fast": BuildRequest(name="fast", cpp_sources=(BINDING,), cuda_sources=(KERNEL + BOUND,), functions=(("run", ""),)),
}  # fmt: skip


@pytest.fixture(scope="module")
def builder(build_cache):
    return Builder(
        cache=build_cache,
        toolchain=probe_toolchain(),
        wrap=lambda command, **_: list(command),
        environment=lambda: dict(os.environ),
    )


def list_fat_binaries(library):
    code = Path(library).read_bytes()
    at = code.find(MAGIC)
    while at >= 0:
        header, body = struct.unpack_from("<HQ", code, at + 6)
        yield code[at : at + header + body]
        at = code.find(MAGIC, at + header + body)


@pytest.mark.parametrize("name", REQUESTS)
def test_code_that_a_source_placed_is_not_of_nvcc(builder, name):
    result = builder.build(REQUESTS[name])
    assert result.extension, result.log
    found = list(list_fat_binaries(result.extension))
    made = [digest_code(one) in list_device_code(result.extension) for one in found]
    assert made.count(False) == name.startswith("placed")
    assert made.count(True) == {"several": 2}.get(name, 1)
    assert result.strategy == ("fast" if name == "fast" else "plain"), result.reason
