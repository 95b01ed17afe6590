"""Constructs of Python that the emulated device cannot do, by the source alone."""

import pytest

from harness.evaluation.emulated.findings import find_uncovered


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\nimport triton\n", "line 2: import triton"),
        ("import triton.language as tl", "line 1: import triton.language"),
        ("from cupy import RawKernel", "line 1: import cupy"),
        ("import torch\ng = torch.cuda.CUDAGraph()", "line 2: torch.cuda.CUDAGraph"),
        ("with torch.cuda.graph(g):\n    pass", "line 1: torch.cuda.graph"),
        ("import torch\n# import triton\nx = 'torch.cuda.CUDAGraph'\n", None),
        ("class M:\n    def graph(self):\n        return self.graph", None),
        ("not python (", None),
    ],
)
def test_unsupported_feature_is_named_with_its_line(source, found):
    assert find_uncovered(source) == found


def test_modules_of_the_language_are_covered():
    assert find_uncovered("import triton\nimport cupy", frozenset(("triton",))) == "line 2: import cupy"
