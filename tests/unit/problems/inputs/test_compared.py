"""Values that the reference compares inputs with."""

from dataclasses import replace

import pytest
import torch

from harness.domain import InputContract, Problem
from harness.problems.inputs.kinds import find_kind
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import OperatorCall, OperatorCalls, OperatorUse

COMPARED = find_kind("compared")
BYTES = InputContract(kind="integer", low=0, high=255, is_stated=True)
TRAITS = InputTraits(problem=Problem(name="p", suite="s", source=""), is_known=True)
SORT = OperatorCall(name="sort", overload="sort", on_input=True, converts_to_integers=False, terms=1)


def watch(function, *inputs):
    with OperatorCalls(inputs) as calls:
        function(*inputs)
    return calls.use


def list_made(given, traits, variants=(0, 1, 2)):
    made = []
    for seed in range(30):
        changed = tuple(one.clone() for one in given)
        COMPARED.change(changed, traits, torch.Generator().manual_seed(seed))
        made += [changed] if COMPARED.find_variant(seed) in variants else []
    return made


def test_constants_are_those_that_values_are_compared_with_as_they_are():
    x, n = torch.randn(8, 9), torch.arange(8)
    assert watch(lambda x, n: (x[:, 1] > 0.5, n.long() == 7, x.sign()), x, n).compared == {(0, 0.5), (1, 7.0), (0, 0.0)}
    assert watch(lambda x: (x + 1 > 0.5, x.sum(1) == 3, x.exp() >= 2), x).compared == set()
    use = watch(lambda x, n: (x[:, 1:] > x[:, :-1], x[:, 0] <= n, x + 1 > x), x, n)
    assert use.pairs == {(0, 0), (0, 1)} and not use.compared


@pytest.mark.parametrize(("constant", "written"), [(0.5, True), (0.0, True), (0.6, False), (2.0, False)])
def test_constants_are_written_if_the_dtype_represents_and_the_contract_allows_them(constant, written):
    contract = InputContract(low=-1, high=1, is_stated=True)
    use = OperatorUse(frozenset(), compared=frozenset({(0, constant)}))
    traits, given = replace(TRAITS, use=use, contracts=(contract,)), (torch.rand(40, 50) / 4 + 0.1,)
    assert COMPARED.applies(traits, given) == written
    shares = [float((changed == constant).float().mean()) for (changed,) in list_made(given, traits)]
    assert (max(shares) > 0.4) == written and min(shares) < 0.1


def test_integers_get_the_neighbours_of_constants_too_within_their_bounds():
    use = OperatorUse(frozenset(), compared=frozenset({(0, 0.0), (0, 128.0), (0, 255.0)}))
    traits, given = replace(TRAITS, use=use, contracts=(BYTES,)), (torch.full((40, 50), 7, dtype=torch.uint8),)
    values = {value for (changed,) in list_made(given, traits) for value in changed.unique().tolist()}
    assert values == {0, 1, 7, 127, 128, 129, 254, 255}


def test_constants_beyond_a_shorter_integer_are_limited_to_the_range_of_draws():
    use = OperatorUse(frozenset(), compared=frozenset({(0, 300.0), (0, 2.0**63)}))
    traits = replace(TRAITS, use=use, contracts=(InputContract(kind="integer", is_stated=True),))
    given = (torch.randint(9, (40, 50), dtype=torch.uint8),)
    values = {value for (changed,) in list_made(given, traits) for value in changed.unique().tolist()}
    assert values == set(range(9))


def test_inputs_that_are_compared_with_each_other_share_values():
    use = OperatorUse(frozenset(), pairs=frozenset({(0, 1)}))
    given = torch.randn(40, 50), torch.randn(60)
    made = list_made(given, replace(TRAITS, use=use), variants=(0,))
    assert all(torch.isin(one, given[1]).float().mean() > 0.4 for one, _ in made)
    assert all(torch.isin(other, given[0]).float().mean() > 0.3 for _, other in made)
    ties = replace(TRAITS, use=OperatorUse(frozenset(), pairs=frozenset({(0, 0)})))
    assert all(len(one.unique()) < 1900 for one, _ in list_made(given, ties, variants=(0,)))


@pytest.mark.parametrize(
    "traits",
    [
        replace(TRAITS, problem=replace(TRAITS.problem, backward=True)),
        replace(TRAITS, use=OperatorUse(frozenset([SORT]))),
        replace(TRAITS, contracts=(InputContract(is_related=True),)),
    ],
)
def test_real_numbers_stay_where_equal_ones_may_be_treated_differently(traits):
    traits = replace(traits, use=replace(traits.use, compared=frozenset({(0, 0.0)})))
    assert not COMPARED.applies(traits, (torch.randn(8, 9),))
