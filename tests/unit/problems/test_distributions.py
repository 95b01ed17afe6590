"""Other values for the same inputs."""

from __future__ import annotations

import pytest
import torch

from harness.problems.distributions import FILLS, redistribute
from harness.problems.find import DISTRIBUTION_NAMES


def fill(value: object, distribution: str, seed: int = 0) -> object:
    return redistribute(value, distribution, torch.Generator().manual_seed(seed))


def test_every_named_distribution_can_be_made():
    assert set(DISTRIBUTION_NAMES) == {"as_given", *FILLS}


@pytest.mark.parametrize("distribution", FILLS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_shape_dtype_and_strides_stay(distribution, dtype):
    given = torch.rand(7, 5).to(dtype).t()
    made = fill(given, distribution)
    assert (made.shape, made.dtype, made.stride()) == (given.shape, dtype, (1, 5))
    assert made.isfinite().all()


@pytest.mark.parametrize("distribution", FILLS)
def test_integers_and_scalars_stay_as_given(distribution):
    indices = torch.arange(5)
    value = [indices, 3, {"flag": True}]
    assert fill(value, distribution)[0].tolist() == [0, 1, 2, 3, 4]
    assert fill(value, distribution)[1:] == [3, {"flag": True}]


@pytest.mark.parametrize("distribution", ["normal", "uniform", "ties", "integers"])
def test_random_distributions_follow_the_seed(distribution):
    first, again, other = (fill(torch.zeros(64), distribution, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_values_are_what_their_names_say():
    given = torch.rand(4, 6) - 0.5
    assert fill(given.clone(), "zeros").abs().max() == 0
    assert torch.equal(fill(given.clone(), "large"), given * 1000)
    assert torch.equal(fill(given.clone(), "alternating").sign()[0], torch.tensor([1.0, -1, 1, -1, 1, -1]))
    assert set(fill(torch.zeros(99), "integers").tolist()) == {0.0, 1.0}
    assert len(set(fill(torch.zeros(99), "ties").tolist())) == 4


def test_an_expanded_tensor_stays_expanded():
    given = torch.rand(3, 1).expand(3, 4)
    made = fill(given, "normal")
    assert made.stride() == (1, 0)
    assert torch.equal(made[:, 0], made[:, 3])


def test_large_half_precision_inputs_stay_finite():
    assert fill(torch.full((4,), 5.0, dtype=torch.float16), "large").isfinite().all()
