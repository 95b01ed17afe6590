"""The rule by which the values of outputs are right or wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from truths import DEFAULT, FLOATS, evaluate, exact_truth, make_truth, outcome_of

from harness.domain import Outcome, Tolerance
from harness.evaluation.correctness.allowed_errors import BLOCK, FLOORS
from harness.evaluation.correctness.comparison import are_surely_close, compare_outputs
from harness.evaluation.correctness.leaf_comparison import CHUNK
from harness.problems.operators import Terms
from harness.tensors.outputs import flatten_outputs


@pytest.mark.parametrize("dtype", FLOATS)
def test_just_inside_the_floor_passes_and_just_outside_fails(dtype):
    # All are 1, so rtol is the allowed error. The truth moves, not the candidate, which can't be as near to the border.
    candidate = torch.ones(BLOCK, dtype=dtype)
    for share, expected in ((0.999, None), (1.001, Outcome.WRONG_VALUE)):
        exact = torch.ones(BLOCK, dtype=torch.float64)
        exact[7] -= FLOORS[dtype].rtol * share
        assert outcome_of(make_truth(exact, exact.to(dtype)), candidate, Tolerance(factor=1.0)) == expected


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_references_own_error_times_the_factor_is_allowed_and_no_more(dtype):
    # The truth is 1 everywhere and the reference off by `own_error`; one element moves to four times that, or so.
    reference = torch.full((BLOCK,), 1 + 3 * FLOORS[dtype].rtol, dtype=torch.float64).to(dtype)
    own_error = float(reference[0]) - 1
    candidate = torch.ones(BLOCK, dtype=dtype)
    for share, expected in ((0.999, None), (1.001, Outcome.WRONG_VALUE)):
        exact = torch.ones(BLOCK, dtype=torch.float64)
        exact[7] -= 4 * own_error * share
        reference[7] = exact[7].to(dtype)
        assert outcome_of(make_truth(exact, reference), candidate, Tolerance(factor=4.0)) == expected


def test_accidentally_exact_reference_element_does_not_tighten_the_tolerance():
    exact = torch.rand(4 * BLOCK, dtype=torch.float64) + 1
    reference = (exact + 1e-3).float()
    reference[5] = exact[5].float()
    candidate = (exact + 2e-3).float()
    assert outcome_of(make_truth(exact, reference), candidate) is None


def test_reference_error_at_large_values_does_not_loosen_small_ones():
    exact = torch.cat([torch.full((BLOCK,), 1e4), torch.ones(BLOCK)]).double()
    reference = (exact * (1 + 1e-5)).float()
    candidate = reference.clone()
    candidate[-1] += 0.01  # less than the reference's error of 0.1 among the large ones
    assert outcome_of(make_truth(exact, reference), candidate) is Outcome.WRONG_VALUE


def test_a_sum_that_cancels_is_measured_by_its_neighbours():
    exact = torch.randn(BLOCK, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact[3] = 1e-9
    candidate = exact.float()
    candidate[3] += 1e-6
    assert outcome_of(make_truth(exact, exact.float()), candidate) is None


def test_copied_values_may_differ_by_a_few_roundings_only():
    values = torch.randn(3 * BLOCK, generator=torch.Generator().manual_seed(0))
    close, far = values * (1 + 4e-7), values * (1 + 3e-5)
    copied, computed = exact_truth(values), make_truth(values.double() * (1 + 1e-9), values)
    assert [outcome_of(copied, found) for found in (close, far)] == [None, Outcome.WRONG_VALUE]
    assert [outcome_of(computed, found) for found in (close, far)] == [None, None]
    saturated = compare_outputs(copied, flatten_outputs(far), DEFAULT, "large", copied=frozenset())
    assert saturated[0] is None  # other calls are computed
    few_digits = exact_truth(values.round())
    assert outcome_of(few_digits, values.round() * (1 + 3e-5)) is None
    own, found = flatten_outputs(values), flatten_outputs(values * (1 + 1e-6))
    assert are_surely_close(own, found, DEFAULT) and not are_surely_close(own, found, DEFAULT, {0})


@pytest.mark.parametrize("elements", [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7, 128 * BLOCK + 5])
def test_one_wrong_element_is_found_wherever_it_is(elements):
    values = torch.rand(elements, generator=torch.Generator().manual_seed(1)) + 0.5
    for at in {0, elements // 2, elements - 1}:
        candidate = values.clone()
        candidate[at] *= 1.01
        outcome, trial = evaluate(exact_truth(values), candidate)
        assert outcome is Outcome.WRONG_VALUE
        assert (trial.mismatched, trial.elements) == (1, elements)
        assert f"at [{at}]" in trial.message


def test_a_short_last_block_is_measured_with_the_one_before_it():
    exact = torch.ones(BLOCK + 1, dtype=torch.float64)
    exact[-1] = 1e-9
    candidate = exact.float()
    candidate[-1] += 1e-6
    assert outcome_of(exact_truth(exact.float()), candidate) is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_or_infinity_where_the_truth_is_finite_always_fails(dtype, wrong):
    values = torch.ones(9, dtype=dtype)
    candidate = values.clone()
    candidate[4] = wrong
    outcome, trial = evaluate(exact_truth(values), candidate, Tolerance(factor=1e9, atol=1e30, rtol=0.99))
    assert outcome is Outcome.WRONG_VALUE
    assert (trial.mismatched, trial.worst_ratio, trial.max_abs_error) == (1, None, None)


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_must_be_where_and_what_the_truth_says(special):
    values = torch.ones(9)
    values[4] = special
    assert outcome_of(exact_truth(values), values.clone()) is None
    for other in {1.0, 3e38, math.nan, math.inf, -math.inf} - {special}:
        if math.isnan(special) and math.isnan(other):
            continue
        candidate = values.clone()
        candidate[4] = other
        assert outcome_of(exact_truth(values), candidate) is Outcome.WRONG_VALUE


def test_truth_beyond_the_range_of_the_dtype_is_expected_as_infinity():
    exact = torch.tensor([1.0, 1e6, -1e6], dtype=torch.float64)
    truth = make_truth(exact, exact.half())
    assert outcome_of(truth, torch.tensor([1.0, math.inf, -math.inf]).half()) is None
    assert outcome_of(truth, torch.tensor([1.0, 65504.0, -math.inf]).half()) is Outcome.WRONG_VALUE


def test_a_candidate_may_overflow_where_the_reference_does_or_be_right_there():
    exact = torch.tensor([1.0, 100.0], dtype=torch.float64)
    truth = make_truth(exact, torch.tensor([1.0, math.inf]))
    assert outcome_of(truth, torch.tensor([1.0, math.inf])) is None
    assert outcome_of(truth, torch.tensor([1.0, 100.0])) is None
    assert outcome_of(truth, torch.tensor([1.0, -math.inf])) is Outcome.WRONG_VALUE
    assert outcome_of(truth, torch.tensor([1.0, math.nan])) is Outcome.WRONG_VALUE


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_and_booleans_are_exact(dtype):
    values = torch.tensor([0, 1, 1, 0, 1]).to(dtype)
    assert outcome_of(exact_truth(values), values.clone()) is None
    candidate = values.clone()
    candidate[2] = 0
    outcome, trial = evaluate(exact_truth(values), candidate)
    assert outcome is Outcome.WRONG_VALUE
    assert (trial.mismatched, trial.elements) == (1, 5)
    assert "at [2]" in trial.message


def test_large_integers_are_not_compared_through_floats():
    values = torch.tensor([2**62 + 1])
    assert outcome_of(exact_truth(values), values - 1) is Outcome.WRONG_VALUE


def test_an_index_may_be_the_references_or_the_float64_runs():
    truth = make_truth(torch.tensor([3, 7]), torch.tensor([3, 8]))
    assert outcome_of(truth, torch.tensor([3, 7])) is None
    assert outcome_of(truth, torch.tensor([3, 8])) is None
    assert outcome_of(truth, torch.tensor([3, 9])) is Outcome.WRONG_VALUE


def test_complex_outputs_are_compared_by_their_parts():
    values = torch.randn(99, dtype=torch.complex64)
    truth = make_truth(values.to(torch.complex128) * (1 + 1e-9), values)
    assert outcome_of(truth, values * (1 + 1e-6)) is None
    assert outcome_of(truth, values.conj().resolve_conj()) is Outcome.WRONG_VALUE


def test_zeros_are_wrong_however_small_the_truth_is():
    for size in (1e-3, 1e-12, 1e-30):
        values = torch.rand(500) * size
        assert outcome_of(exact_truth(values), torch.zeros(500)) is Outcome.WRONG_VALUE


def test_zeros_are_right_where_the_truth_is_zero():
    assert outcome_of(exact_truth(torch.zeros(500)), torch.zeros(500)) is None


def test_zero_regions_use_the_whole_output_if_the_reference_is_truth():
    values = torch.cat([torch.ones(BLOCK), torch.zeros(BLOCK)])
    candidate = values + 2e-5  # below 1e-4 of the mean
    assert outcome_of(exact_truth(values, "reference"), candidate) is None
    assert outcome_of(exact_truth(values, "float64"), candidate) is Outcome.WRONG_VALUE


def test_a_stated_tolerance_replaces_the_floor():
    values = torch.ones(50)
    assert outcome_of(exact_truth(values), values + 0.01) is Outcome.WRONG_VALUE
    assert outcome_of(exact_truth(values), values + 0.01, Tolerance(rtol=0.02)) is None
    assert outcome_of(exact_truth(values), values + 0.01, Tolerance(atol=0.02)) is None
    assert outcome_of(exact_truth(values), values + 1e-5, Tolerance(rtol=1e-6)) is Outcome.WRONG_VALUE
    assert outcome_of(exact_truth(values), values.clone(), Tolerance(rtol=0.0, atol=0.0)) is None


def test_the_trial_holds_the_numbers():
    exact = torch.ones(64, dtype=torch.float64)
    reference = (exact + 2.0**-20).float()
    candidate = exact.float()
    candidate[9] += 2.0**-14
    _, trial = evaluate(make_truth(exact, reference), candidate)
    assert trial.reference_max_abs_error == 2.0**-20
    assert trial.max_abs_error == 2.0**-14
    assert trial.worst_ratio == pytest.approx(2.0**-14 / 1e-4)
    assert (trial.passed, trial.mismatched, trial.elements, trial.message) == (True, 0, 64, "")


def test_the_size_of_a_chunk_does_not_change_the_verdict(monkeypatch):
    exact = torch.randn(40 * BLOCK + 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    candidate = exact.float()
    candidate[17 * BLOCK + 1] += 0.1
    whole = evaluate(exact_truth(exact.float()), candidate)
    monkeypatch.setitem(CHUNK, "cpu", 3 * BLOCK)
    assert evaluate(exact_truth(exact.float()), candidate) == whole


@settings(max_examples=30)
@given(
    st.integers(1, 5000),
    st.integers(0, 2**31),
    st.sampled_from([1e-20, 1e-3, 1.0, 1e6]),
    st.sampled_from(["normal", "positive", "relu"]),
)
def test_rounding_to_float32_passes_and_to_bfloat16_fails_at_every_scale(elements, seed, scale, shape):
    exact = torch.randn(elements + 20, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale
    exact = {"normal": exact, "positive": exact.abs() + scale, "relu": exact.relu()}[shape]
    truth = make_truth(exact, exact.float())
    assert outcome_of(truth, exact.float()) is None
    assert outcome_of(truth, exact.bfloat16().float()) is Outcome.WRONG_VALUE


@settings(max_examples=30)
@given(st.integers(1, 4000), st.integers(0, 2**31), st.sampled_from(FLOATS))
def test_the_reference_itself_always_passes(elements, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    exact = torch.randn(elements, dtype=torch.float64, generator=generator)
    noise = torch.randn(elements, dtype=torch.float64, generator=generator) * 10.0 ** -int(seed % 8)
    reference = (exact + noise * exact.abs() ** (seed % 3)).to(dtype)
    assert outcome_of(make_truth(exact, reference), reference, Tolerance(factor=1.0)) is None


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(FLOATS),
    error=st.sampled_from([0.0, 0.3, 0.6, 1.5]),
    special=st.sampled_from([0.0, math.inf, math.nan]),
)
def test_certainly_close_values_pass(seed, dtype, error, special):
    source = torch.Generator().manual_seed(seed)
    own = torch.randn(3, 40, dtype=torch.float64, generator=source).to(dtype)
    own[1, 1] = special
    found = (own.double() * (1 + error * FLOORS[dtype].rtol * torch.randn(3, 40, generator=source))).to(dtype)
    close = are_surely_close(flatten_outputs(own), flatten_outputs(found), DEFAULT)
    if close:
        assert outcome_of(exact_truth(own, kind="reference"), found) is None
    assert close or error > 0 or math.isnan(special)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(FLOATS),
    decades=st.sampled_from([0, 3, 30, 600]),  # the range of the values
    own_error=st.sampled_from([0.0, 0.1, 1.0, 1e3, 1e6]),  # in floors
    error=st.sampled_from([0.01, 0.1, 0.2, 0.3, 1.0, 4.0]),
    affected=st.sampled_from([1.0, 0.5, 0.02, 0.001]),
    factor=st.sampled_from([2.0, 8.0]),
    by_peak=st.booleans(),
    stated=st.sampled_from([(None, None), (0.09, None), (0.05, 1e-3), (1e-3, 1e-5), (None, 1e-2)]),
)
def test_the_truth_accepts_what_is_surely_close(
    seed, dtype, decades, own_error, error, affected, factor, by_peak, stated
):  # fmt: skip
    source = torch.Generator().manual_seed(seed)
    shape = (seed % 3 + 1, 700)

    def draw() -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=source)

    def choose() -> Tensor:
        return torch.rand(shape, generator=source) < affected

    exponents = (torch.rand(shape, dtype=torch.float64, generator=source) - 0.5) * decades
    exact = draw() * 10.0 ** exponents.clamp(-300, 300) * (torch.rand(shape, generator=source) < 0.9)
    tolerance = Tolerance(factor=factor, rtol=stated[0], atol=stated[1])
    limit, floor = torch.finfo(dtype).max, stated[0] or FLOORS[dtype].rtol
    exact = exact.clamp(-limit, limit)
    noise = torch.where(choose(), draw() * own_error * floor, 0.0)
    sizes = exact.abs() if seed % 2 else exact.abs().mean()
    own = (exact + noise * sizes).clamp(-limit, limit).to(dtype)
    own_sizes = own.double().abs() if seed % 5 else own.double().abs().mean()
    moved = own.double() + torch.where(choose(), draw().sign() * error * floor * own_sizes, 0.0)
    found = moved.clamp(-limit, limit).to(dtype)
    truth = make_truth(exact, own)
    if are_surely_close(flatten_outputs(own), flatten_outputs(found), tolerance):
        outcome, trial = compare_outputs(truth, flatten_outputs(found), tolerance, "as_given", by_peak=by_peak)
        assert outcome is None, trial.message


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_near_the_largest_have_a_limit_too(dtype):
    signs = torch.where(torch.arange(1 << 16) // 512 % 2 == 0, 1.0, -1.0).double()
    own = (signs * torch.finfo(dtype).max / 3000).to(dtype)
    found = own * 1.2
    found[7] = math.inf
    assert not are_surely_close(flatten_outputs(own), flatten_outputs(found), DEFAULT)


def test_stated_share_must_match_and_other_elements_be_finite():
    values, tolerance = torch.ones(1000), Tolerance(rtol=0.02, matched=0.99)
    for wrong, value, outcome in ((10, 5.0, None), (11, 5.0, Outcome.WRONG_VALUE), (1, math.nan, Outcome.WRONG_VALUE)):
        candidate = values.clone()
        candidate[:wrong] = value
        assert outcome_of(exact_truth(values), candidate, tolerance) is outcome
        integers = candidate.nan_to_num(2.0).int()
        expected = None if wrong <= 10 else Outcome.WRONG_VALUE
        assert outcome_of(exact_truth(values.int()), integers, tolerance) is expected


def test_tolerated_elements_do_not_excuse_small_values_that_are_lost():
    values = torch.full((1000,), 1e-3)
    values[:100] = 1.0
    candidate = torch.where(values == 1.0, values, 0.0)
    candidate[0] = 5.0
    assert outcome_of(exact_truth(values), candidate, Tolerance(atol=2e-3, matched=0.99)) is Outcome.WRONG_VALUE


def test_few_of_many_values_may_be_lost_without_an_explanation():
    values = torch.ones(1 << 20)
    values[::BLOCK] = 1e-6
    truth, found = make_truth(values.double(), values), values.clone()
    (leaf,) = truth.leaves
    known = replace(leaf, reach=torch.zeros_like(leaf.exact))
    for count, expected in ((100, None), (600, Outcome.WRONG_VALUE)):
        found[::BLOCK][:count] = 0.0
        outputs = flatten_outputs(found)
        assert are_surely_close(flatten_outputs(values), outputs, DEFAULT, keeps_all=True) is (expected is None)
        assert compare_outputs(replace(truth, leaves=(known,)), outputs, DEFAULT, "contrasted")[0] is expected


def test_small_values_beside_large_ones_are_lost_only_if_inputs_explain_it():
    values = torch.cat([torch.full((BLOCK,), 1e9), torch.ones(8), torch.full((BLOCK,), 1e9)])
    truth, found = make_truth(values.double() * (1 + 1e-9), values), values.clone()
    found[BLOCK : BLOCK + 8] = 0.25
    outputs = flatten_outputs(found)
    outcome, trial = compare_outputs(truth, outputs, Tolerance(), "contrasted")
    assert (outcome, trial.lost) == (None, 8)
    for reach, expected in ((1e5, None), (10.0, Outcome.WRONG_VALUE)):
        (leaf,) = truth.leaves
        known = replace(leaf, reach=torch.full_like(leaf.exact, reach))
        assert compare_outputs(replace(truth, leaves=(known,)), outputs, Tolerance(), "contrasted")[0] == expected


@pytest.mark.parametrize(
    ("logarithms", "size", "expected"),
    [(1, 2e-9, None), (0, 2e-9, Outcome.WRONG_VALUE), (1, 5e-6, Outcome.WRONG_VALUE)],
)
def test_a_logarithm_of_a_sum_near_one_has_the_sums_roundings(logarithms, size, expected):
    exact = torch.linspace(5.0, 6.0, 4000, dtype=torch.float64)
    exact[::9] = size
    found = torch.where(exact < 1, 0.0, exact).float()
    terms = Terms(operators=1, logarithms=logarithms, are_alike=True)
    truth = make_truth(exact, exact.float())
    assert compare_outputs(truth, flatten_outputs(found), Tolerance(), "contrasted", terms=terms)[0] is expected
