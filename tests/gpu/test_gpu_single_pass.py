"""Measurements of large tensors in one pass give what torch's operators give."""

import math

import pytest
import torch

from harness.evaluation.correctness import comparison
from harness.tensors import fill_values, outputs
from harness.tensors.single_pass import LEAST_ELEMENTS, find_kernels

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("special", "alone"), [(0.0, True), (0.0, False), (math.inf, True), (-1e4, False)])
def test_one_pass_measures_as_operators_do(monkeypatch, dtype, special, alone):
    values = torch.randn(LEAST_ELEMENTS + 77, device="cuda").to(dtype)
    found = values + (torch.randn_like(values) * torch.rand_like(values) ** 9)
    if special:
        values[: LEAST_ELEMENTS // 3] = special
    assert find_kernels(values, found)

    def measure():
        fills = fill_values.find_fills(values)
        errors = comparison._measure_errors(values, found, 1e-3, 1e-4, fills, alone=alone)
        return fills, errors

    fills, errors = measure()
    for module in (comparison, fill_values):
        monkeypatch.setattr(module, "find_kernels", lambda *_: None)
    expected_fills, expected = measure()
    assert (fills.values, fills.has_special) == (expected_fills.values, expected_fills.has_special)
    assert fills.size == pytest.approx(expected_fills.size, rel=1e-6, nan_ok=True)
    assert errors[:2] == expected[:2]
    assert errors[2] == pytest.approx(expected[2], rel=1e-4, nan_ok=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_one_pass_digests_as_operators_do(monkeypatch, dtype):
    values = torch.randn(LEAST_ELEMENTS * 2 + 78, device="cuda").to(dtype)
    digest = outputs._digest(values)
    monkeypatch.setattr(outputs, "find_kernels", lambda *_, **__: None)
    assert outputs._digest(values).equal(digest)
    values[-1] += 1
    assert (outputs._digest(values) != digest).sum() == 1
