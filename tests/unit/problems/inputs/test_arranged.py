"""Given values in another order."""

from dataclasses import replace

import pytest
import torch

from harness.domain import InputContract, Problem
from harness.problems.inputs.kinds import find_kind
from harness.problems.inputs.ordered import FEWEST_VALUES, LONGEST_RUN, LONGEST_SORTED
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import OperatorCall, OperatorUse

ARRANGED = find_kind("arranged")
STATED_INTEGERS = InputContract(kind="integer", low=0, high=99, is_stated=True)
LAYER_NORM = OperatorCall(name="native_layer_norm", overload="", on_input=True, converts_to_integers=False, terms=256)
TRAITS = InputTraits(problem=Problem(name="p", suite="s", source=""), is_known=True)


def arrange(given, seed, traits=TRAITS):
    changed = given.clone()
    ARRANGED.change((changed,), traits, torch.Generator().manual_seed(seed))
    return changed


def list_arranged(given, variants, traits=TRAITS):
    return [arrange(given, seed, traits) for seed in range(80) if ARRANGED.find_variant(seed) in variants]


def test_half_of_the_rows_hold_the_same_values_in_another_order():
    given = torch.randn(60, 60)
    for changed in list_arranged(given, {0, 1}):
        by_row = torch.equal(changed.sort(1).values, given.sort(1).values)
        assert by_row or torch.equal(changed.sort(0).values, given.sort(0).values)
        rows = (changed == given).all(1 if by_row else 0)
        assert 10 <= int(rows.sum()) <= 50


def test_rows_rise_or_fall_or_have_one_peak():
    given = torch.randn(1, 200)
    kinds = set()
    for changed in list_arranged(given, {0}):
        turns = changed[0].diff().sign().diff().count_nonzero()
        kinds.add((int(turns), bool(changed[0, 0] > changed[0, -1])))
        assert turns <= 1
    assert {(0, False), (0, True)} <= kinds and any(turns == 1 for turns, _ in kinds)


def test_rows_consist_of_runs_or_periods_of_several_values():
    given = torch.randn(1, 1000)
    runs = [int((one[0].diff() == 0).sum()) for one in list_arranged(given, {2})]
    assert min(runs) >= 1000 // 2 and max(runs) <= 1000 * (LONGEST_RUN - 1) // LONGEST_RUN
    periods = [len(one[0].unique()) for one in list_arranged(given, {3})]
    assert min(periods) >= FEWEST_VALUES and min(periods) < 32 < max(periods) <= 500


def test_long_rows_are_arranged_in_a_stretch_only():
    given = torch.randn(1, 5000)
    for changed in list_arranged(given, range(4)):
        places = (changed != given)[0].nonzero()
        assert 1 + int(places.max() - places.min()) <= LONGEST_SORTED


@pytest.mark.parametrize(
    ("contract", "changes"),
    [
        (STATED_INTEGERS, True),
        (replace(STATED_INTEGERS, distinct=True), False),
        (replace(STATED_INTEGERS, is_stated=False), False),
        (replace(STATED_INTEGERS, kind="mask"), False),
    ],
)
def test_only_integers_that_are_stated_and_may_be_equal_are_arranged(contract, changes):
    given, traits = torch.randint(100, (8, 50)), replace(TRAITS, contracts=(contract,))
    assert any(not torch.equal(arrange(given, seed, traits), given) for seed in range(8)) == changes
    assert ARRANGED.applies(traits, (given,)) == changes


def test_references_that_take_variances_exclude_it():
    assert ARRANGED.applies(TRAITS, (torch.randn(8, 50),))
    assert not ARRANGED.applies(replace(TRAITS, use=OperatorUse(frozenset([LAYER_NORM]))), (torch.randn(8, 50),))
    assert not ARRANGED.applies(TRAITS, (torch.randn(8, 2 * FEWEST_VALUES - 1),))
