"""Where findings point in a source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.source_locations import find_lines
from harness.domain import Finding

SOURCE = '''import torch
SOURCE = r"""
int add(int a) {
    return a + missing;
    return a;
    return a;
}
"""
x = 1
'''


def places(message="", evidence="", *, check="build", source=SOURCE):
    return find_lines(Finding(check=check, severity="fatal", message=message, evidence=evidence), source)


def test_a_line_that_another_check_mentions_is_no_place():
    assert places("differs in line 3 of the output", check="wrong_value") == ()


def test_a_traceback_names_lines_of_the_candidate_only():
    trace = '  File "/usr/lib/torch/nn.py", line 4, in f\n  File "/tmp/candidate.py", line 9, in <module>'
    assert places("RuntimeError", trace) == (9,)


@pytest.mark.parametrize(
    "evidence",
    [
        "main.cpp:3:16: error: 'missing' was not declared\n    3 |     return a + missing;\n      |  ^",
        'cuda.cu(77): error: identifier "missing" is undefined\n      return a + missing;\n                 ^',
    ],
)
def test_a_compilers_message_is_placed_by_the_line_it_quotes(evidence):
    assert places("the build failed", evidence) == (4,)


KERNELS = '''import torch
CPP = "torch::Tensor scale(torch::Tensor a);"
CUDA = r"""
__global__ void scale(float* a) {
    a[threadIdx.x] = 1;
}
"""
x = 1
'''


def test_the_emulated_device_counts_within_the_text_that_has_the_kernel():
    message, evidence = "cuda.cu:3: error: two threads write a[0]", "in kernel scale, block (0, 0, 0), thread (1, 0, 0)"
    assert places(message, evidence, check="race", source=KERNELS) == (5,)
    other = "this write and the read by thread (0, 0, 0) at cuda.cu:2 are not ordered: missing __syncthreads()?"
    assert places(f"cuda.cu:3: error: race on s (byte 4): {other}", evidence, source=KERNELS) == (4, 5)
    assert places(message, evidence, check="race", source=KERNELS * 2) == ()
    assert places("cuda.cu:99: error: x", evidence, check="race", source=KERNELS) == ()
    assert places(message, "in kernel other", check="race", source=KERNELS) == ()


def test_without_a_unique_place_there_is_none():
    assert places("", "main.cpp:4:5: error: x\n    4 |     return a;") == ()
    assert places("", "main.cpp:4:5: error: x", source="no (python") == ()
    assert places("cuda.cu:1: error: x", "in kernel scale", source="no (python") == ()
    assert places("", "/usr/include/x.h:4:5: error: x") == ()


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_text_gives_lines_within_the_source(message, evidence, source):
    found = places(message, evidence, source=source)
    assert all(1 <= line <= source.count("\n") + 1 for line in found)
