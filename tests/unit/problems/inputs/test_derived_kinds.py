"""Variations of given inputs that show hidden work."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from harness.domain import InputContract, Problem
from harness.problems.inputs import tensors
from harness.problems.inputs.kinds import find_kind
from harness.problems.inputs.ordered import CLUSTERED, TIED
from harness.problems.inputs.sparse import ALIKE, FEW_ZEROS, FILL, FILLED, NEARLY, TOGETHER
from harness.problems.inputs.tensors import FEW, perturb
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import OperatorCall, OperatorCalls, OperatorUse, Terms

RAISED = OperatorUse(frozenset(), raised=frozenset({0}))
TRAITS = InputTraits(problem=Problem(name="p", suite="s", source=""), use=RAISED)
WEIGHTED = replace(TRAITS, has_state=True)
NORM = OperatorCall(name="native_layer_norm", overload="", on_input=True, converts_to_integers=False, terms=256)
NORMALISED = replace(WEIGHTED, use=OperatorUse(frozenset([NORM])))
RELU = OperatorCall(name="relu", overload="", on_input=True, converts_to_integers=False, terms=1)
RECTIFIED = replace(TRAITS, use=OperatorUse(frozenset([RELU])))
PRODUCT = OperatorCall(name="mm", overload="", on_input=True, converts_to_integers=False, terms=1)
TOP_K = OperatorCall(name="topk", overload="", on_input=True, converts_to_integers=False, terms=1)


def vary(tensor, kind, seed=0, traits=TRAITS):
    find_kind(kind).change((tensor,), traits, torch.Generator().manual_seed(seed))
    return tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("functions", "sizes"), [(1, {1.0, 4.0, 8.0}), (2, {1.0, 4.0})])
def test_varied_values_are_given_values_negated_or_scaled(dtype, functions, sizes):
    given, traits = (
        torch.rand(40, 50).to(dtype),
        replace(TRAITS, use=OperatorUse(frozenset(), Terms(functions=functions))),
    )
    varied = [vary(given.clone(), "varied", seed, traits) for seed in range(16)]
    ratios = torch.cat([each / given for each in varied]).nan_to_num(1.0)
    assert set(ratios.unique().tolist()) == {sign * size for sign in (-1.0, 1.0) for size in sizes}


def test_most_varied_inputs_differ_in_few_elements():
    given = torch.rand(200, 500)
    shares = [float((vary(given.clone(), "varied", seed, RECTIFIED) != given).float().mean()) for seed in range(20)]
    assert sum(share < 0.001 for share in shares) >= 10
    assert all(shares)


def test_varied_values_of_one_sign_keep_it_in_half_of_the_calls():
    given = torch.rand(40, 50)
    kept = sum(bool((vary(given.clone(), "varied", seed) >= 0).all()) for seed in range(16))
    assert 4 <= kept <= 12
    assert not any((vary(given.clone(), "varied", seed, RECTIFIED) >= 0).all() for seed in range(8))
    assert any((vary(given - 0.5, "varied", seed).sign() != (given - 0.5).sign()).any() for seed in range(8))


def test_factors_of_products_have_the_same_larger_slices_at_times():
    multiplying = replace(TRAITS, use=OperatorUse(frozenset([PRODUCT])))
    shared = 0
    for seed in range(30):
        given = torch.rand(20, 300), torch.rand(300, 30)
        made = find_kind("varied").change(
            tuple(one.clone() for one in given), multiplying, torch.Generator().manual_seed(seed)
        )
        larger = [(mine / usual).round() for mine, usual in zip(made, given, strict=True)]
        slices = [one.flatten(at) for at, one in ((0, larger[0][:1]), (0, larger[1][:, :1]))]
        is_even = bool((larger[0] == larger[0][:1]).all() and (larger[1] == larger[1][:, :1]).all())
        shared += is_even and torch.equal(*slices) and len(slices[0].unique()) == 2
    assert shared >= 6


def test_whole_values_that_keep_their_sign_are_as_much_larger():
    given = torch.rand(40, 50)
    ratios = [vary(given.clone(), "varied", seed) / given for seed in range(40)]
    larger = [max(float((each == factor).float().mean()) for factor in (4.0, 8.0)) for each in ratios]
    assert 6 <= sum(share > 0.99 for share in larger) <= 18


SIGMOID = OperatorCall(name="sigmoid", overload="", on_input=True, converts_to_integers=False, terms=1)


@pytest.mark.parametrize(("dtype", "low", "high"), [(torch.float32, 10, 20), (torch.float16, 3, 8.1)])
def test_scattered_values_reach_the_tails_of_functions(dtype, low, high):
    given, traits = torch.rand(200, 500).to(dtype), replace(TRAITS, use=OperatorUse(frozenset([SIGMOID])))
    largest = max(float(vary(given.clone(), "varied", seed, traits).abs().max()) for seed in range(20))
    assert low < largest < high
    assert max(float(vary(given.clone(), "varied", seed).abs().max()) for seed in range(20)) < 8.1


def make_leading(added):
    return replace(TRAITS, is_known=True, returns_floats=True, use=OperatorUse(frozenset(), Terms(added=added)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_values_have_the_same_leading_digits_in_half_of_the_calls(dtype):
    given = torch.randn(3000).to(dtype)
    shares = {500: [], 1 << 20: []}
    for added, seed in itertools.product(shares, range(20)):
        changed = vary(given.clone(), "biased", seed, make_leading(added))
        assert torch.equal(changed.sign(), given.sign())
        leading = (changed.double().frexp().mantissa.abs() * 2**13).floor()
        shares[added].append(float((leading == leading.median()).double().mean()))
    assert 5 <= sum(share > 0.8 for share in shares[500]) <= 15
    assert max(shares[1 << 20]) < 0.5  # float32 sums of as many such terms would err in one direction, too


@pytest.mark.parametrize("compute", [torch.square, torch.exp, torch.abs])
def test_results_for_values_of_the_same_digits_err_in_one_direction(compute):
    given, biases = torch.randn(4000), []
    for values in (given, *(vary(given.clone(), "biased", seed, make_leading(500)) for seed in range(20))):
        exact = compute(values)
        biases.append(abs(float((exact.bfloat16().float() - exact).sum() / exact.sum())))
    assert biases[0] < 1e-4
    assert max(biases) > 5e-4


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 24), (torch.float16, 3), (torch.bfloat16, 3)])
def test_scaled_values_are_whole_tensors_or_slices_times_a_power_of_two(dtype, most):
    given = torch.randn(40, 50).to(dtype)
    powers = set()
    for seed in range(40):
        ratios = (vary(given.clone(), "scaled", seed).float() / given.float()).nan_to_num(1.0)
        assert torch.equal(ratios, ratios[:, :1].expand_as(ratios))
        (power,) = (-ratios.unique().log2()).tolist()[:1]
        powers.add(power)
        assert bool((ratios == 1).any()) or bool((ratios == 0.5**power).all())
    assert len(powers) > min(most, 6) / 2
    assert {1.0} < powers | {1.0} <= set(map(float, range(1, most + 1)))


def test_values_become_larger_than_given_ones_where_the_problem_declares_it():
    problem = replace(TRAITS.problem, distributions=("as_given", "large"))
    given = torch.rand(40, 50)
    largest = []
    for seed in range(40):
        changed = given.clone()
        find_kind("scaled").change((changed,), replace(TRAITS, problem=problem), torch.Generator().manual_seed(seed))
        largest.append(float((changed / given).max()))
    assert 8 <= sum(one > 1 for one in largest) <= 32
    assert max(largest) == 1024


def test_sparse_values_leave_other_elements_equal():
    given = torch.randn(256, 256)
    shares = []
    for seed in range(12):
        changed = vary(given.clone(), "sparse", seed)
        _, counts = changed.unique(return_counts=True)
        shares.append(float(counts.max()) / changed.numel())
    assert 4 <= sum(share > 0.8 for share in shares) < 12


def test_sparse_values_beside_weights_keep_a_share():
    given, kind = torch.randn(256, 256), find_kind("sparse")
    for seed in (seed for seed in range(16) if kind.find_variant(seed) != ALIKE):
        kind.change((changed := given.clone(),), NORMALISED, torch.Generator().manual_seed(seed))
        kept = changed == given
        assert bool((changed[~kept] == 0).all())
        share = float(kept.float().mean())
        assert 1 / 5000 < (1 - share if kind.find_variant(seed) == FEW_ZEROS else share) < 1 / 7


def test_all_but_few_elements_are_equal_also_where_values_are_positive():
    given, kind, kept = torch.rand(64, 64) + 0.05, find_kind("sparse"), []
    for seed in range(120):
        kind.change((changed := given.clone(),), WEIGHTED, torch.Generator().manual_seed(seed))
        if kind.find_variant(seed) == FILLED:
            assert bool((changed[changed != given] == FILL).all())
            kept.append(int((changed == given).sum()))
        elif kind.find_variant(seed) != ALIKE:
            assert torch.equal(changed, given)  # nothing shows that zero is allowed
    assert min(kept) <= FEW
    assert max(kept) > 64


def test_sums_of_mostly_zeros_lose_no_more_than_others():
    kind = find_kind("sparse")
    for seed in range(40):
        has_zeros = kind.find_variant(seed) not in (NEARLY, FILLED, ALIKE)
        assert kind.take_variant(seed).makes_terms_alike is not has_zeros
        assert kind.take_variant(seed).by_peak


def test_slices_are_alike_at_times_and_keep_values_at_the_same_places():
    given, kind = (torch.randn(256, 256), torch.randn(256, 256)), find_kind("sparse")
    for seed in range(60):
        changed = kind.change(tuple(one.clone() for one in given), TRAITS, torch.Generator().manual_seed(seed))
        if kind.find_variant(seed) == ALIKE:
            for one in changed:
                assert min(one.unique(dim=dim).size(dim) for dim in range(2)) <= FEW + 1
        elif kind.find_variant(seed) == TOGETHER:
            kept = [one == other for one, other in zip(changed, given, strict=True)]
            assert torch.equal(*kept) or bool(kept[0].all()) or bool(kept[1].all())


def test_one_of_three_scaled_variants_is_nearly_as_large_as_given():
    given, kind = torch.rand(40, 50) + 1, find_kind("scaled")
    for seed in (seed for seed in range(60) if kind.find_variant(seed) == 4):
        kind.change((changed := given.clone(),), TRAITS, torch.Generator().manual_seed(seed))
        assert set((changed / given).unique().tolist()) < {0.5, 0.25, 0.125}


def test_scaled_values_go_below_a_constant_of_the_reference():
    with OperatorCalls() as calls:
        torch.nn.functional.normalize(torch.full((4, 4), 0.5), dim=-1)
    assert calls.use.above_constants == (40,)  # 1 / 1e-12, almost
    traits, given = replace(TRAITS, use=calls.use), torch.rand(40, 50) + 1
    least = []
    for seed in range(20):
        find_kind("scaled").change((changed := given.clone(),), traits, torch.Generator().manual_seed(seed))
        least.append(float(changed.min()))
    assert 2.0**-59 < min(least) < 1e-14


def test_indices_and_masks_with_both_values_stay():
    mask = (torch.rand(30, 30) < 0.5).float()
    assert torch.equal(vary(mask.clone(), "varied"), mask)


def test_parts_of_larger_tensors_can_be_varied():
    rows = torch.rand(30, 40)
    vary(rows[:, ::2], "varied", 1)
    vary(rows.t(), "varied", 2)
    assert rows.isfinite().all()


@pytest.mark.parametrize(("operator", "by"), [("_softmax", 128.0), ("amax", -128.0)])
def test_values_are_moved_by_a_constant_unless_they_are_a_mask(operator, by):
    given, mask = torch.zeros(2000) + 1e-7 * torch.randn(2000), (torch.rand(30, 30) < 0.5).float()
    call = OperatorCall(name=operator, overload=operator, on_input=True, converts_to_integers=False, terms=0)
    traits = replace(TRAITS, use=OperatorUse(frozenset([call]), raised=frozenset({0, 1} if by > 0 else ())))
    found = set()
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        find_kind("shifted").change((moved := given.clone(), kept := mask.clone()), traits, generator)
        assert torch.equal(kept, mask)
        found |= {round(one / by) for one in moved.tolist()}
    assert 1 in found
    assert max(found) > 1 or by > 0


@pytest.mark.parametrize("kind", ["biased", "shifted"])
def test_in_many_calls_only_secret_parts_change(kind):
    given = torch.randn(60, 70)
    moved = [given + 128, given + 256]
    expected = moved if kind == "shifted" else [vary(given.flatten().clone(), kind).view(60, 70)]
    shares = []
    for seed in range(60):
        varied = vary(given.clone(), kind, seed)
        changed = varied != given
        assert any(torch.equal(varied[changed], one[changed]) for one in expected)
        shares.append(float(changed.float().mean()))
    usual = float((expected[0] != given).float().mean())
    assert 3 <= sum(share > 0.9 * usual for share in shares) <= (45 if kind == "biased" else 25)
    assert sum(share < 0.05 for share in shares) >= 5
    assert sum(map(bool, shares)) >= 50  # a few chosen values may be biased already


def test_values_of_one_slice_move_together():
    given, along = torch.randn(12, 5, 7), [0, 0, 0]
    for seed in range(40):
        changed = vary(given.clone(), "shifted", seed) != given
        slices = [changed.movedim(dim, 0).flatten(1) for dim in range(3)]
        are_whole = [torch.equal(one.all(1), one.any(1)) for one in slices]
        assert any(are_whole)
        along = [count + is_whole for count, is_whole in zip(along, are_whole, strict=True)]
    assert min(along) > 5


def test_parts_of_a_large_tensor_that_are_moved_are_the_chosen_ones(monkeypatch):
    given = torch.randn(64, 50)
    expected = [vary(given.clone(), "shifted", seed) for seed in range(8)]
    monkeypatch.setitem(tensors.PARTS, "cpu", 100)
    assert all(torch.equal(vary(given.clone(), "shifted", seed), expected[seed]) for seed in range(8))


def order(given, *, on_input, dim=-1):
    traits = replace(TRAITS, use=OperatorUse(frozenset({replace(TOP_K, on_input=on_input, dim=dim)})))
    for seed in range(24):
        changed = given.clone()
        if find_kind("ordered").find_variant(seed) not in (TIED, CLUSTERED):
            find_kind("ordered").change((changed,), traits, torch.Generator().manual_seed(seed))
            yield changed


def order_variant(given, variant, **traits):
    kind, use = find_kind("ordered"), OperatorUse(frozenset({replace(TOP_K, on_input=True, dim=-1)}))
    seed = next(seed for seed in itertools.count() if kind.find_variant(seed) == variant)
    kind.change((given,), replace(TRAITS, use=use, **traits), torch.Generator().manual_seed(seed))
    return given


def test_values_of_a_row_are_equal_at_times_where_inputs_are_ordered():
    given = torch.rand(40, 50)
    tied = order_variant(given.clone(), TIED)
    assert max(len(row.unique()) for row in tied) <= 25
    assert all(set(row.tolist()) <= set(own.tolist()) for row, own in zip(tied, given, strict=True))
    distinct = order_variant(given.clone(), TIED, contracts=(InputContract(distinct=True),))
    assert all(len(row.unique()) == 50 for row in distinct)


def test_vectors_lie_in_few_clusters_at_times():
    given = torch.rand(400, 3)
    near = order_variant(given.clone(), CLUSTERED)
    assert float(near.min()) >= 0 and float(near.max()) <= 1
    usual, nearest = (float(torch.cdist(one, one).kthvalue(20, dim=1).values.mean()) for one in (given, near))
    assert nearest < 0.5 * usual


def find_least_gap(values, dim):
    gaps = values.sort(dim).values.diff(dim=dim)
    return float((gaps / values.abs().amax(dim, keepdim=True)).median())


@pytest.mark.parametrize(
    ("on_input", "gap", "dim"), [(True, 2**-19, 0), (True, 2**-19, 1), (True, 2**-19, None), (False, 2**-18, 1)]
)
def test_different_values_of_a_row_become_neighbours_at_times(on_input, gap, dim):
    given = torch.special.ndtri((torch.randperm(2000) + 0.5) / 2000).view(40, 50)  # normal, and no two values equal
    made = list(order(100 * given, on_input=on_input, dim=dim))
    at = 0 if dim == 0 else 1
    gaps = [find_least_gap(one.view(1, -1) if dim is None else one, at) for one in made]
    assert 2 <= sum(gap / 2 < one < 2 * gap for one in gaps) <= 14
    assert all(len(one.unique()) == 2000 for one in made) or dim is not None


def test_values_that_differ_stay_different_and_equal_ones_equal():
    given = 0.0173 * (torch.randperm(2000).view(40, 50) - 1000)  # not a few roundings apart, which stretching merges
    given[:, 7] = given[:, 8]
    for changed in order(given, on_input=True):
        assert all(len(row.unique()) == 49 for row in changed)


@pytest.mark.parametrize("shape", [(64, 50), (50, 4, 16), (3200,)])
def test_few_rows_of_a_large_tensor_are_sorted(shape, monkeypatch):
    monkeypatch.setitem(tensors.PARTS, "cpu", 100)
    given = torch.randn(shape)
    rising = given.flatten().diff() > 0
    for changed in order(given, on_input=True):
        others = int(((changed.flatten().diff() > 0) != rising).sum())
        assert min(others, len(rising) - others) <= 200


@pytest.mark.parametrize("stride", [4, 16])
def test_the_largest_values_lie_a_stride_apart_at_times(stride):
    made = list(order(torch.randn(40, 64), on_input=True))
    places = [one.topk(4).indices % stride for one in made]
    assert sum(int((one == one[:, :1]).all(1).sum()) > 8 for one in places) >= 2


def test_rows_are_sorted_at_times():
    made = list(order(torch.randn(40, 50), on_input=True))
    signs = [one.diff(dim=1).sign() for one in made]
    assert sum(bool((one.abs().sum(1) == one.sum(1).abs()).any()) for one in signs) >= 6
    assert any(bool((one > 0).any() and (one < 0).any()) for one in signs)


def test_rows_of_a_half_type_with_too_many_values_stay_apart():
    given = torch.randn(40, 5000).half()
    assert all(len(one.unique()) > 1 and one.isfinite().all() for one in order(given, on_input=True))


def test_contrasted_slices_keep_their_values_beside_much_smaller_ones():
    given, other = torch.rand(40, 7), torch.rand(40)
    shares = []
    for seed in range(80):
        changed, second = given.clone(), other.clone()
        find_kind("contrasted").change((changed, second), TRAITS, torch.Generator().manual_seed(seed))
        ratios, more = changed / given, second / other
        assert set(torch.cat([ratios.flatten(), more]).log2().remainder(1).tolist()) == {0.0}
        assert ratios.min() >= 2.0**-48
        is_small = (ratios < 1).all(1)
        if torch.equal(more < 1, is_small) or torch.equal(more == 1, is_small):
            shares.append(float(is_small.float().mean()))
    assert len(shares) > 8
    assert min(shares) < 0.1
    assert max(shares) > 0.9


def test_contrasted_terms_are_added_in_order_or_negligible_together():
    traits, powers = replace(TRAITS, use=OperatorUse(frozenset(), Terms(added=4096))), set()
    for seed in range(80):
        given = torch.rand(4096, 3)
        ratios = vary(given.clone(), "contrasted", seed, traits) / given
        powers.add(float(ratios.min().log2()))
    assert not [power for power in powers if 4096 * 2.0**power > 1e-5 and power < -22]
    assert min(powers) < -40
    assert max(powers) > -22


def test_values_of_which_means_are_taken_have_less_contrast():
    with OperatorCalls(()) as calls:
        torch.rand(3, 4).mean(1)
    traits = replace(TRAITS, use=calls.use)
    given = torch.rand(40, 7)
    least = [float((vary(given.clone(), "contrasted", seed, traits) / given).min()) for seed in range(60)]
    assert min(least) == 2.0**-24


def test_each_row_has_a_contrast_of_its_own_at_times():
    given, rows = torch.rand(200, 60), []
    for seed in range(20):
        is_small = vary(given.clone(), "contrasted", seed) < given
        rows.append((len(is_small.unique(dim=0)), is_small))
    own = [is_small for count, is_small in rows if count > 40]
    assert 4 < len(own) < 16
    last_alone = [is_small.select(dim, -1) & (is_small.sum(dim) == 1) for is_small in own for dim in (0, 1)]
    assert any(map(torch.any, last_alone))


def test_only_values_that_a_maximum_is_subtracted_from_are_moved():
    given, gate = torch.randn(40, 50), torch.randn(40, 1)
    with OperatorCalls((gate, given)) as calls:
        scores = (given.double() * 2).clone()
        ((scores - scores.amax(1, keepdim=True)).exp() * gate.exp()).sum()
    for seed in range(8):
        values = gate.clone(), given.clone()
        find_kind("shifted").change(values, replace(TRAITS, use=calls.use), torch.Generator().manual_seed(seed))
        assert torch.equal(values[0], gate)
        assert values[1].max() > 100


def test_values_beside_a_mask_are_large_and_negative():
    with OperatorCalls((given := torch.rand(40, 50) - 0.5,)) as calls:
        (given * 2).masked_fill(given > 0, -math.inf)
    traits = replace(TRAITS, use=calls.use)
    for seed in range(8):
        find_kind("shifted").change((changed := given.clone(),), traits, torch.Generator().manual_seed(seed))
        assert -(2.0**20) < changed.min() < -(2.0**12)
        assert bool((changed == given).logical_or(changed < 0).all())


@pytest.mark.parametrize(("roundings", "least"), [(1, 0.0), (64, 0.0), (1, 0.25)])
def test_a_negative_seed_moves_values_the_opposite_way(roundings, least):
    given = torch.randn(4096, dtype=torch.float64)
    moves = []
    for seed in (2, -2):
        moved = given.clone()
        perturb([moved], seed, roundings, least)
        moves.append(moved - given)
    assert torch.allclose(moves[0], -moves[1], rtol=1e-3, atol=1e-18)
    assert (moves[0] != 0).all() and 0.4 < (moves[0] > 0).double().mean() < 0.6
