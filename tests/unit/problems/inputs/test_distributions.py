"""Other values for the same inputs."""

from __future__ import annotations

import pytest
import torch

from harness.domain import InputContract, Problem
from harness.problems.discovery import DISTRIBUTION_NAMES
from harness.problems.inputs import tensors
from harness.problems.inputs.declared import DISTRIBUTIONS, PADDING
from harness.problems.inputs.kinds import DECLARED, MIXED, find_kind
from harness.problems.inputs.tensors import perturb
from harness.problems.inputs.traits import InputTraits

FILLS = [distribution.name for distribution in DISTRIBUTIONS]
TRAITS = InputTraits(problem=Problem(name="p", suite="s", source="", distributions=("as_given", "zeros")))


def fill(value: object, distribution: str, seed: int = 0) -> object:
    return find_kind(distribution).change((value,), TRAITS, torch.Generator().manual_seed(seed))[0]


def mix(value: object, seed: int) -> object:
    return MIXED.change((value,), TRAITS, torch.Generator().manual_seed(seed))[0]


def test_every_named_distribution_can_be_made():
    assert [kind.name for kind in DECLARED if kind is not MIXED] == list(DISTRIBUTION_NAMES)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_padded_inputs_are_equal_values_in_a_noncontiguous_view(dtype):
    given = (torch.arange(30).reshape(2, 3, 5) % 7).to(dtype)
    made = fill(given.clone(), "padded")
    assert torch.equal(made, given)
    assert made.stride() == (3 * (5 + PADDING), 5 + PADDING, 1)
    assert made.storage_offset() == PADDING
    assert not made.is_contiguous()


def test_padding_between_rows_is_not_part_of_the_tensor():
    made = fill(torch.ones(2, 3), "padded")
    whole = made.as_strided((2 * (3 + PADDING),), (1,), 0)
    assert int(whole.isnan().sum()) == 2 * PADDING


def test_padding_walks_nested_values_and_leaves_what_has_no_rows():
    given = [torch.tensor(3.0), 4, {"a": (torch.ones(2, 2), torch.ones(0, 2))}]
    made = fill(given, "padded")
    assert (made[0].item(), made[1]) == (3.0, 4)
    assert made[2]["a"][0].stride() == (2 + PADDING, 1)
    assert made[2]["a"][1].shape == (0, 2)
    assert given[2]["a"][0].is_contiguous()


@pytest.mark.parametrize("seed", range(40))
def test_mixed_inputs_hold_some_of_both_and_nothing_else(seed):
    mixed, integers, scalar = mix([torch.ones(40, 30).t(), torch.arange(3), 2.0], seed)
    assert (mixed.shape, mixed.stride()) == ((30, 40), (1, 30))
    assert 0 < (mixed == 0).sum() < 0.9 * mixed.numel()
    assert set(mixed.unique().tolist()) == {0.0, 1.0}
    assert (integers.tolist(), scalar) == ([0, 1, 2], 2.0)


def test_the_split_of_mixed_inputs_is_another_each_time():
    parts = [1 - mix(torch.ones(64, 64), seed) for seed in range(20)]
    assert len({tuple(part.flatten().tolist()) for part in parts}) == 20
    small_samples = [part[::8, :8].sum().item() for part in parts]
    assert 0.0 in small_samples  # a cheap sample may well miss what is there


def test_mixing_a_single_number_replaces_it():
    assert mix(torch.tensor(1.0), 0).item() == 0.0


@pytest.mark.parametrize("shape", [(1000,), (7, 301), (3, 5, 100), (301, 2)])
def test_large_tensors_are_refilled_in_parts_as_a_whole_is(shape, monkeypatch):
    monkeypatch.setattr(tensors, "PART", 50)
    given = torch.rand(shape) + 1
    whole = given.abs() * (1 - 2 * (torch.arange(shape[-1]) % 2))
    assert torch.equal(fill(given.clone(), "alternating"), whole)
    mixed = mix(given.clone(), 0)
    assert torch.equal(mixed[mixed != 0], given[mixed != 0])
    assert (mixed == 0).any()


def test_stated_complex_numbers_change_as_real_ones():
    traits = InputTraits(
        problem=Problem(name="p", suite="s", source=""),
        is_known=True,
        contracts=(InputContract(is_stated=True),),
        returns_floats=True,
    )
    kind = find_kind("sparse")
    assert kind.applies(traits, (torch.randn(64, 64, dtype=torch.complex64),))
    zeros = 0
    for seed in range(12):
        changed = torch.randn(64, 64, dtype=torch.complex64)
        kind.change((changed,), traits, torch.Generator().manual_seed(seed))
        zeros += int((changed == 0).sum())
    assert zeros > 4096
    moved = changed.clone()
    perturb((moved,), 3)
    assert not torch.equal(moved, changed) and torch.allclose(moved, changed)
