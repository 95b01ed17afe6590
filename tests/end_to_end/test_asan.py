"""`--asan` calls a C++ program under AddressSanitizer."""

import pytest

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return 2 * x


def get_inputs():
    return [torch.randn(64, 100)]


def get_init_inputs():
    return []
"""
# Without torch's headers, which take a minute to compile.
CANDIDATE = '''
import ctypes
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" void twice(const float* x, float* y, long size) {
  for (long i = 0; i < size; ++i) {
    y[i] = 2 * x[i];
  }
}
"""
library = ctypes.CDLL(load_inline("twice", SOURCE, is_python_module=False, no_implicit_headers=True))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        library.twice(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.numel()))
        return y
'''
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("needs_compiler")]


def evaluate(bench, statement="y[i] = 2 * x[i];"):
    source = CANDIDATE.replace("y[i] = 2 * x[i];", statement)
    return bench.evaluate(source, PROBLEM, attribute_work=False, asan=True, call_s=60.0)


@pytest.mark.parametrize(
    ("statement", "access"),
    [("y[i ? i : size] = 2 * x[i];", "WRITE"), ("y[i] = 2 * (i ? x[i] : x[size]);", "READ")],
    ids=["output", "input"],
)
def test_an_access_beyond_a_tensor_is_an_error_with_its_line(bench, statement, access):
    found = evaluate(bench, statement)
    assert found.outcome == "runtime_error"
    expected = f"AddressSanitizer: heap-buffer-overflow, {access} of size 4, in twice, candidate.py:10, 0 bytes"
    assert found.message.startswith(expected)
    (finding,) = [one for one in found.findings if one.check == "address_sanitizer"]
    assert finding.evidence.startswith('File "candidate.py", line 10, in twice')


def test_a_program_without_invalid_access_is_correct_with_a_note(bench):
    found = evaluate(bench)
    assert found.outcome == "correct", found.message
    notes = [one.message for one in found.findings if one.check == "address_sanitizer"]
    assert notes == ["AddressSanitizer: one call made no invalid access"]
