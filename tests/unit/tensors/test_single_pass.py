"""Triton's interpreter runs the kernels on the CPU; tests/gpu compares them on a GPU."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

COMPARES = """
import math
import torch
from harness.evaluation.correctness.comparison import _measure_errors
from harness.tensors import single_pass_kernels as kernels
from harness.tensors.fill_values import Fills, _find_extreme, _measure_others

torch.manual_seed(0)
cpu = torch.device("cpu")
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
    for count in (1, 4095, 9001):
        values = torch.randn(count).to(dtype)
        values[-1] = values[0] = 1.1
        extreme = _find_extreme(values, Fills(), cpu)
        least, most, special = kernels.find_extremes(values)
        assert max(least, most, key=abs) == extreme and not special
        others, size = _measure_others(extreme, values, Fills(), cpu)
        extremes, total = kernels.measure_others(values, extreme)
        assert count - extremes == others and math.isclose(size, total, rel_tol=1e-6, abs_tol=1e-12)
        if dtype is torch.float64:
            continue
        found = values + (torch.randn(count) * torch.rand(count) ** 9).to(dtype)
        for share, nothing, alone in ((1e-3, 1e-4, True), (1e-3, 1e-4, False), (0.1, 0.0, True)):
            expected = _measure_errors(values, found, share, nothing, Fills(), alone=alone)
            measured = kernels.measure_errors(values, found, share, nothing, alone=alone)
            assert measured[:2] == expected[:2] and math.isclose(measured[2], expected[2], rel_tol=1e-4), (dtype, count)
            assert dtype is torch.bfloat16 or count == 1 or 0 < measured[0] < count
        found[-1] = math.nan
        assert kernels.measure_errors(values, found, 1e9, 1e9, alone=True)[0] == 1
        values[-1], values[0] = math.inf, math.nan
        assert kernels.find_extremes(values)[2] == min(count, 2)
limits = torch.iinfo(torch.int64)
key = torch.randint(limits.min, limits.max, (8192,))
for count in (1, 4096, 8192, 20001):
    words = torch.randint(-(1 << 31), 1 << 31, (count,)).int()
    expected = [(part.long() * key[: len(part)]).sum() for part in words.split(len(key))]
    assert kernels.sum_words(words, key).equal(torch.stack(expected))
"""


@pytest.mark.slow
def test_kernels_measure_as_operators_do():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", COMPARES], env=environment, check=True, timeout=300)
