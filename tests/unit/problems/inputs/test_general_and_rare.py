"""Legal inputs that `get_inputs` makes never or hardly ever."""

import math

import pytest
import torch

from harness.domain import InputContract, Problem
from harness.problems.inputs.conformity import find_violation
from harness.problems.inputs.inference import complete_contract
from harness.problems.inputs.kinds import find_kind
from harness.problems.inputs.rare import Draws
from harness.problems.inputs.tensors import draw_sizes
from harness.problems.inputs.traits import InputTraits, relate_numbers
from harness.problems.operators import NO_USE, OperatorCalls
from harness.protocol import list_leaves

RARE, GENERAL = find_kind("rare"), find_kind("general")
PROBLEM = Problem(name="p", suite="s", source="")
FREE = (-math.inf, math.inf)


def infer(value, other, use=NO_USE, *, related=False):
    pairs = zip(list_leaves(value), list_leaves(other), strict=True)
    return tuple(complete_contract(InputContract(), *pair, use, drawn_from=None if related else FREE) for pair in pairs)


def alter(inputs, others, seed=0, *, related=False):
    traits = InputTraits(problem=PROBLEM, contracts=infer(inputs, others, related=related))
    return GENERAL.change(inputs, traits, torch.Generator().manual_seed(seed))


def alter_one(value, seed=0):
    return alter((value,), (value,), seed)[0]


def make_inputs():
    lengths, expanded = torch.full((4,), 9), torch.arange(3.0).expand(5, 3)
    return (torch.randn(30), [torch.ones(4), 0.5], {"k": 3, "lengths": lengths}, expanded)


def test_input_equal_under_two_seeds_is_constant():
    contracts = infer(make_inputs(), make_inputs())
    assert [one.is_constant for one in contracts] == [False, True, True, True, True, True]
    assert [one.kind for one in contracts] == ["real", "real", "real", "fixed", "integer", "real"]


def test_integers_may_not_change_where_the_reference_scatters():
    places = torch.tensor([3, 1, 2])
    with OperatorCalls() as scattering:
        torch.zeros(3).index_fill(0, torch.tensor([1]), 2.0)
    assert [infer([places], [places], use)[0].kind for use in (NO_USE, scattering.use)] == ["integer", "as_drawn"]


def test_zeros_among_drawn_values_become_others():
    value = torch.relu(torch.randn(4000))
    filled = [alter_one(value, seed)[value == 0].count_nonzero() for seed in range(8)]
    assert max(filled) > 1900 and min(filled) > 0
    (related,) = alter((value,), (value.flip(0),), related=True)
    assert not related[value == 0].any()


def test_only_constants_are_altered_and_given_tensors_stay():
    drawn, mask = torch.randn(30), torch.ones(30)
    altered = alter((drawn, mask, 7, 0.5), (drawn + 1, mask, 7, 0.5), 1)
    assert altered[0] is drawn
    assert (mask == 1).all()
    assert (altered[1] != 1).any()
    assert altered[2] == 7
    assert 0.25 <= altered[3] <= 0.75 != altered[3]


@pytest.mark.parametrize("given", [torch.ones(60, 70).tril().bool(), torch.rand(60, 70)])
def test_in_half_of_the_calls_few_elements_or_slices_are_altered(given):
    shares = [float((alter_one(given, seed) != given).float().mean()) for seed in range(60)]
    assert sum(share > 0.1 for share in shares) >= 15
    assert sum(share < 0.05 for share in shares) >= 8
    assert sum(map(bool, shares)) >= 45  # of a few chosen elements of a mask none may be altered


def test_lengths_become_shorter_but_not_empty():
    altered = alter_one(torch.full((200,), 50))
    assert 1 <= altered.min() < 50
    assert altered.max() == 50
    assert set(alter_one(torch.ones(50, dtype=torch.long)).tolist()) == {0, 1}


def test_masks_are_full_and_indices_ordered_but_for_few_elements():
    mask, places = torch.rand(30, 40) < 0.5, torch.randint(40, (40,))
    contracts = (InputContract(kind="mask"), InputContract(kind="index", low=0, high=50, is_stated=True))
    traits = InputTraits(problem=PROBLEM, contracts=contracts)
    found = [GENERAL.change_discrete((mask, places), traits, torch.Generator().manual_seed(one)) for one in range(60)]
    assert any(0 < int((~one).sum()) <= 8 for one, _ in found)
    assert any(0 < int((one != torch.arange(40)).sum()) <= 16 for _, one in found)


def test_sorted_values_begin_with_the_last_unless_all_begin_alike():
    contract = InputContract(kind="sorted", low=0, is_stated=True)
    traits = InputTraits(problem=PROBLEM, contracts=(contract,))
    for first in (0, 3):
        given = torch.tensor([first, 5, 9, 12])
        seeds = (seed for seed in range(300) if GENERAL.changes_all(seed))
        found = {int(GENERAL.change((given,), traits, torch.Generator().manual_seed(seed))[0][0]) for seed in seeds}
        assert found == ({0, 12} if first else {0})


def test_sorted_integers_stay_sorted_between_the_same_ends():
    altered = alter_one(torch.arange(0, 640, 64))
    assert (altered[0], altered[-1]) == (0, 576)
    assert torch.equal(altered, altered.sort().values)
    assert not torch.equal(altered, torch.arange(0, 640, 64))


def test_values_that_a_search_requires_in_order_stay_sorted():
    knots = torch.linspace(0, 1, 40)
    with OperatorCalls() as search:
        torch.searchsorted(knots, torch.rand(5))
    contracts = infer([knots, torch.rand(40)], [knots, torch.rand(40)], search.use)
    assert [one.kind for one in contracts] == ["sorted", "real"]
    assert [find_kind("ordered").allows(one) for one in contracts] == [False, True]
    traits = InputTraits(problem=PROBLEM, contracts=contracts)
    altered = [GENERAL.change((knots,), traits, torch.Generator().manual_seed(seed))[0] for seed in range(9)]
    assert all(torch.equal(one, one.sort().values) for one in altered)
    assert not any(torch.equal(one, knots) for one in altered)


def test_other_integers_are_shuffled():
    given = torch.arange(40).flip(0)
    assert torch.equal(alter_one(given).sort().values, given.sort().values)
    assert not torch.equal(alter_one(given), given)


def test_triangles_stay():
    given = torch.ones(9, 9).tril()
    (altered,) = alter((given,), (given,), related=True)
    assert torch.equal(altered == 0, given == 0)


@pytest.mark.parametrize("low", [float("-inf"), -1e9])
def test_additive_masks_are_swapped_without_fully_masked_rows(low):
    given = torch.full((60, 60), low).triu(1)
    for seed in range(12):
        altered = alter_one(given, seed)
        assert set(altered.unique().tolist()) == {low, 0.0}
        assert 0 < int((altered != given).sum()) < 3000
        assert bool((altered == 0).any(1).all())


@pytest.mark.parametrize(
    "given",
    [
        torch.ones(40, 40, dtype=torch.bool).tril().expand(2, 3, 40, 40), torch.arange(65).expand(4, 65),
        torch.ones(2, 90)[:, None, None].expand(2, 3, 5, 90), torch.full((40, 40), -1e9).triu(1).expand(3, 40, 40),
    ],
)  # fmt: skip
def test_expanded_tensors_are_altered_and_stay_expanded(given):
    altered = alter_one(given)
    assert not torch.equal(altered, given)
    assert (altered.shape, altered.stride()) == (given.shape, given.stride())
    assert torch.equal(altered[0].expand_as(altered), altered) or given.stride(0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.randint(3, 90, (40, 50)),
        lambda: torch.randint(3, high=90, size=(40, 50)),
        lambda: torch.randint(low=3, high=90, size=(40, 50)),
    ],
)
def test_the_ends_of_integer_draws_are_written(draw):
    with RARE.watch_draws(5, None):
        drawn = draw()
    assert (int(drawn.min()), int(drawn.max())) == (3, 89)


def test_the_ends_of_uniform_draws_are_written():
    with RARE.watch_draws(6, None):
        drawn = torch.rand(40, 50)
    assert drawn.min() == 0
    assert 1 - 1e-6 < drawn.max() < 1
    with RARE.watch_draws(6, None):
        assert torch.randint(9, (30,)).max() == 8


def test_watched_draws_are_only_counted():
    torch.manual_seed(3)
    expected = torch.rand(7), torch.randint(5, (9,))
    torch.manual_seed(3)
    with Draws() as draws:
        found = torch.rand(7), torch.randint(5, (9,))
    assert all(map(torch.equal, expected, found))
    assert (draws.fewest, draws.integers) == (7, True)


def generalise(value, seed=0):
    """Of values that are drawn and depend on each other."""
    return alter((value,), (value.roll(1),), seed, related=True)[0]


def test_one_mark_in_each_row_and_first_marks_are_not_kept():
    one_hot = torch.nn.functional.one_hot(torch.arange(40) % 7, 7).float()
    first = torch.arange(50) < torch.arange(1, 41)[:, None]
    for given in (one_hot, first):
        changed = [generalise(given, seed=seed) for seed in range(20)]
        assert all(set(one.unique().tolist()) <= {0, 1} for one in changed)
        assert sum(len(one.unique()) == 2 for one in changed) >= 16
        assert sum(bool((one.sum(1) != given.sum(1)).any()) for one in changed) >= 15


def test_whole_numbers_become_fractions_and_zeros_stay():
    given = torch.arange(-50.0, 50.0)
    changed = [generalise(given, seed) for seed in range(20)]
    assert sum(float((one != one.round()).float().mean()) > 0.9 for one in changed) >= 4
    assert all(bool((one != given).any()) and one[50] == 0 for one in changed)
    assert all(((one / given)[given != 0] - 1).abs().max() <= 0.5 for one in changed)


@pytest.mark.parametrize(
    "value", [torch.randn(9, 9).triu(), torch.randint(9, (40,)), torch.rand(9, 9).softmax(1), torch.randn(4, 4)]
)
def test_other_values_are_not_generalised(value):
    assert generalise(value) is value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.rand(8, 8) < 0.5, "any boolean mask"),
        ((torch.rand(8, 8) < 0.5).float(), "any boolean mask"),
        (torch.arange(50.0), "any real numbers"),
        (torch.rand(8, 9).softmax(0), "any probabilities, with a sum of 1 along dimension -2"),
        (torch.rand(8, 8) + torch.rand(8, 8).T.T.tril().mT.triu() * 0, "only what get_inputs makes"),
        (torch.ones(8, 8) - torch.eye(8) / 2, "any symmetric matrices"),
        (torch.ones(8, 8) + torch.eye(8) / 2, "any symmetric positive definite matrices"),
        (torch.rand(8, 8).triu() + 1.5 * torch.eye(8), "any upper triangular matrices"),
        (torch.tensor([0, 3, 3, 7]), "any sorted values"),
        (torch.tensor([2, 0, 1, 3]), "any permutations of 0, 1, 2, ..."),
        (torch.tensor([2, 0, 7, 3]), "integers from 0 to 7"),
        (torch.rand(8, dtype=torch.complex64), "only what get_inputs makes"),
    ],
)
def test_an_inferred_contract_is_general_and_names_structure(value, words):
    assert infer([value], [value.roll(1)], related=True)[0].describe() == words


def state(value, **contract):
    stated = InputContract(argument="x", is_stated=True, **contract)
    traits = InputTraits(problem=PROBLEM, contracts=(complete_contract(stated, value, value, NO_USE, drawn_from=None),))
    return traits, [GENERAL.change((value,), traits, torch.Generator().manual_seed(seed))[0] for seed in range(60)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_the_ends_of_a_stated_range_are_written(dtype):
    kind = "real" if dtype.is_floating_point else "integer"
    _, changed = state(torch.zeros(60, 70, dtype=dtype), kind=kind, low=-100, high=200)
    assert {-100, 200} <= set(torch.stack(changed).unique().tolist())
    assert sum(bool(((one != 0) & (one > -100) & (one < 200)).any()) for one in changed) >= 15


def test_stated_integers_are_large_or_lack_their_low_bits_at_times():
    high = 2**40 - 1
    given = torch.randint(high, (60, 70))
    _, changed = state(given, kind="integer", low=0, high=high)
    assert any(bool((one > high - high // 8).all()) for one in changed)
    assert any(bool((one < high // 8).all()) for one in changed)
    equal_in_low_bits = [int((one % 2**32 == 0).sum()) for one in changed]
    assert sum(count == 4200 for count in equal_in_low_bits) >= 2
    assert sum(count > 200 for count in equal_in_low_bits) >= 20


def test_all_values_approach_the_same_end_of_their_ranges_at_times():
    one, other = (InputContract(argument=name, low=-0.5, high=0.5, is_stated=True) for name in "ab")
    traits = InputTraits(problem=PROBLEM, contracts=(one, other, InputContract(argument="c", low=1, is_stated=True)))
    ends = set()
    for seed in range(40):
        given = (torch.rand(300) - 0.5, torch.rand(300) - 0.5, 1.2 + torch.rand(300))
        a, b, c = GENERAL.change(given, traits, torch.Generator().manual_seed(seed))
        assert bool((a.abs() <= 0.5).all())
        assert bool((c >= 1).all())
        if float(c.max()) < 1.2:
            assert float(a.std()) < 0.05
            assert float(a.mean() * b.mean()) > 0.15
            ends.add(float(a.mean()) > 0)
    assert ends == {False, True}


def test_whole_rows_of_a_mask_are_set_or_cleared():
    _, changed = state(torch.rand(60, 70) < 0.5, kind="mask")
    assert sum(bool(one.all(1).any() or (~one).all(1).any()) for one in changed) >= 3


def test_python_numbers_change_within_their_range():
    assert {one for _, changes in [state(3, kind="integer", low=1, high=4)] for one in changes} == {1, 2, 3, 4}


def test_an_explanation_names_what_a_changed_argument_may_be():
    traits, changed = state(torch.rand(6, 7) < 0.5, kind="mask", structure="lengths")
    assert GENERAL.explain(traits, changed[:1]).startswith("x may be a mask of the first elements of each row")


def test_only_discrete_values_are_compared_where_roundings_count():
    assert not GENERAL.scales_values(state(torch.rand(6, 7) < 0.5, kind="mask")[0])
    assert GENERAL.scales_values(state(torch.rand(6, 7), kind="real", low=0)[0])
    assert GENERAL.scales_values(InputTraits(problem=PROBLEM, contracts=infer([torch.rand(8) < 0.5], [torch.ones(8)])))


@pytest.mark.parametrize(
    "contract", [{"kind": "index", "low": 0, "high": 99}, {"kind": "integer", "low": 3, "high": 50}]
)
def test_most_indices_are_equal_at_times(contract):
    _, changed = state(torch.randint(3, 50, (40, 50)), **contract)
    shares = [float((one == one.mode().values.mode().values).float().mean()) for one in changed]
    assert 1 <= sum(share > 0.7 for share in shares) <= 15


def test_one_row_has_all_entries_at_times():
    _, changed = state(torch.arange(0, 640, 8), kind="sorted", low=0, high=632)
    assert any(bool((one.diff() == 632).any()) for one in changed)
    _, changed = state(torch.full((40, 5), 3), kind="counts", low=1)
    assert any(bool((one.amax(1) == 11).all()) for one in changed)
    assert all(bool((one.sum(1) == 15).all()) for one in changed)


def test_masks_have_no_marks_outside_of_a_box_at_times():
    given = torch.ones(30, 40, dtype=torch.bool)
    _, changed = state(given, kind="mask")
    boxes = [(one.any(1, keepdim=True) & one.any(0)) == one for one in changed if 20 < int(one.sum()) < 1000]
    assert sum(bool(one.all()) for one in boxes) >= 2


def test_permutations_begin_anywhere_and_go_on_in_order_at_times():
    _, changed = state(torch.randperm(40), kind="permutation")
    steps = [set((one.roll(1) - one).remainder(40).tolist()) for one in changed]
    assert {39} in steps and {1} in steps
    assert len({int(one[0]) for one, step in zip(changed, steps, strict=True) if step == {39}}) > 2


def test_most_probabilities_are_zero_at_times():
    _, changed = state(torch.rand(40, 50).softmax(1), kind="probabilities")
    shares = [float((one == 0).float().mean()) for one in changed]
    assert 5 <= sum(share > 0.7 for share in shares) <= 30
    assert all(torch.allclose(one.sum(1), torch.ones(40)) for one in changed)


def relate(*inputs, seeds=16, **contract):
    contracts = tuple(InputContract(**{"kind": "index", "low": 0, **contract}) for _ in inputs)
    traits = InputTraits(problem=PROBLEM, contracts=contracts)
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        relate_numbers(changed := [one.clone() for one in inputs], traits, generator)
        yield changed


def test_sequences_are_copies_of_others_at_other_places():
    given = [torch.randint(1000, (8, 50)) for _ in range(2)]
    for one, other in relate(*given, high=999):
        assert torch.equal(one, given[0]) and float((one == other).float().mean()) < 0.5
    shifted = [
        torch.equal(one[:, at:], other[:, :-at]) for at in range(1, 26) for one, other in relate(*given, high=999)
    ]
    assert not any(shifted)  # each row has a shift of its own


def test_edges_are_those_of_a_path_at_times():
    given = torch.randint(30, (2, 100))
    paths = [edges for (edges,) in relate(given, high=29, is_stated=True) if len(edges.unique(dim=1).T) == 30]
    assert 8 <= len(paths) < 16
    assert all(edges.min() == 0 and edges.max() == 29 for edges in paths)


def test_arguments_that_are_never_larger_stay():
    begins = torch.randint(50, (40,))
    assert all(torch.equal(one, begins) and torch.equal(other, begins + 5) for one, other in relate(begins, begins + 5))


@pytest.mark.parametrize("kind", ["symmetric", "positive_definite"])
def test_some_small_matrices_are_multiples_of_the_identity(kind):
    drawn = torch.randn(200, 3, 3)
    given = drawn @ drawn.mT
    for is_stated in (True, False):
        traits = InputTraits(problem=PROBLEM, contracts=(InputContract(kind=kind, is_stated=is_stated),))
        seed = next(seed for seed in range(100) if GENERAL.find_variant(seed) == 0)
        (changed,) = GENERAL.change((given,), traits, torch.Generator().manual_seed(seed))
        isotropic = changed[:, :1, :1] * torch.eye(3) == changed
        assert 20 < int(isotropic.all(-1).all(-1).sum()) < 80
        assert not find_violation(changed, traits.contracts[0])


def list_changed_matrices(kind):
    drawn = torch.randn(200, 8, 8)
    given = drawn @ drawn.mT + torch.eye(8)
    traits = InputTraits(problem=PROBLEM, contracts=(InputContract(kind=kind, is_stated=True),))
    for seed in (seed for seed in range(60) if GENERAL.find_variant(seed) % GENERAL.whole_one_in):
        (changed,) = GENERAL.change((given,), traits, torch.Generator().manual_seed(seed))
        assert not find_violation(changed, traits.contracts[0])
        yield changed.double()


def test_some_symmetric_matrices_have_the_other_sign():
    for changed in list_changed_matrices("symmetric"):
        assert 50 < int((changed.diagonal(dim1=1, dim2=2).sum(1) < 0).sum()) < 150


def test_positive_definite_matrices_are_badly_scaled_at_times():
    ratios = [one.diagonal(dim1=1, dim2=2) for one in list_changed_matrices("positive_definite")]
    ratios = [float((one.amax(1) / one.amin(1)).median()) for one in ratios]
    assert min(ratios) < 30 and max(ratios) > 200


def test_marks_are_the_edges_of_a_path_at_times():
    given = torch.rand(40, 40) < 0.1
    seeds = [seed for seed in range(400) if GENERAL.find_variant(seed) == 0]
    made = (alter((given,), (given,), seed)[0] for seed in seeds)
    assert any(bool((one.sum(0) == 1).all()) and bool((one.sum(1) == 1).all()) for one in made)


@pytest.mark.parametrize(("low", "high"), [(0, 10**6), (-1023, 1023), (5, 5), (-9, -3), (0, 1), (-(2**63), 2**63 - 1)])
def test_integers_of_each_size_lie_within_their_range(low, high):
    generator, given = torch.Generator().manual_seed(1), torch.zeros(5000, dtype=torch.int64)
    drawn = draw_sizes(low, high, given, generator)
    assert low <= int(drawn.min()) and int(drawn.max()) <= high
    if high == 10**6:
        counts = [int(((drawn >= 10**power) & (drawn < 10 ** (power + 1))).sum()) for power in range(6)]
        assert all(500 < count < 1200 for count in counts)
    if low == -1023:
        assert 2000 < int((drawn < 0).sum()) < 2600
    few = [int((draw_sizes(low, high, given, generator, is_sparse=True) != 0).sum()) for _ in range(20)]
    assert low <= 0 <= high or min(few) == 5000
    assert not low < 0 < high or min(few) < 100
