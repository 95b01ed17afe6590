"""Inputs that differ in a part from those of the call before."""

from dataclasses import replace

import pytest
import torch

from harness.domain import InputContract, Problem
from harness.problems.inputs.traits import InputTraits, exchange_part, exchange_slices, list_exchangeable
from harness.problems.operators import OperatorCall, OperatorUse

TRAITS = InputTraits(problem=Problem(name="p", suite="s", source=""))
TOP_K = OperatorCall(name="topk", overload="", on_input=True, converts_to_integers=False, terms=1)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_exchanged_slices_keep_sums_in_either_order_of_dimensions(requires_grad):
    first = set()
    for seed in range(8):
        given = torch.randn(20, 30)
        before, once, twice = (given.clone().requires_grad_(requires_grad) for _ in range(3))
        for count, one in enumerate((before, once, twice)):
            assert exchange_slices((one,), TRAITS, seed, count=count)
        assert torch.equal(before.sum(), once.sum())
        assert torch.equal(before.sum(), twice.sum())
        first.add(tuple(torch.equal(before.sum(dim), once.sum(dim)) for dim in (0, 1)))
        assert not any(torch.equal(before.sum(dim), twice.sum(dim)) for dim in (0, 1))
        assert bool(((before - given).abs() < 0.04).all())
    assert first == {(True, False), (False, True)}


def test_slices_are_exchanged_only_where_there_are_two():
    assert exchange_slices((torch.randn(1, 30),), TRAITS, 0, count=1)
    assert not exchange_slices((torch.randn(1, 30),), TRAITS, 0, count=2)
    assert not exchange_slices((torch.randn(1),), TRAITS, 0, count=0)


def exchange(*pairs, seed=0, only_one=False):
    inputs, others = zip(*pairs, strict=True)
    places = list_exchangeable(inputs, TRAITS)
    exchange_part(inputs, others, places[seed % len(places)], seed, only_one=only_one)


def test_altered_inputs_differ_in_a_part_of_one_argument():
    for seed in range(20):
        mine, theirs, other = torch.randn(3, 50, 40).mT
        given, kept = mine.clone(), other.clone()
        only_one = seed % 4 < 2
        exchange((mine, theirs), (other, theirs), seed=seed, only_one=only_one)
        counts = sorted(int((one != before).count_nonzero()) for one, before in ((mine, given), (other, kept)))
        assert counts[0] == 0
        assert counts[1] == 1 if only_one else 0 < counts[1] < 2000


def test_values_that_depend_on_each_other_are_not_altered():
    mine = torch.rand(5, 6).softmax(1)
    traits = replace(TRAITS, contracts=(InputContract(kind="probabilities", is_stated=True),))
    assert list_exchangeable((mine,), traits) == []


def test_altered_values_of_few_digits_stay_where_they_are_ordered():
    inputs = torch.randperm(50).float(), torch.randn(50)
    ordering = replace(TRAITS, use=OperatorUse(frozenset([TOP_K])))
    assert list_exchangeable(inputs, TRAITS) == [0, 1]
    assert list_exchangeable(inputs, ordering) == [1]
