"""The border between right and wrong for every dtype of an output: just inside passes, just outside fails."""

from __future__ import annotations

import pytest
import torch

from harness.domain import Outcome, Tolerance
from harness.evaluation.correctness.allowed_errors import FLOORS, Floor
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.leaf_comparison import is_countable
from harness.evaluation.correctness.truth import Truth, TruthLeaf
from harness.tensors.outputs import flatten_outputs

FLOATING = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
WHOLE = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
COMPLEX = {torch.complex64: torch.float32, torch.complex128: torch.float64}
WRONG = Outcome.WRONG_VALUE


def make_truth(exact: torch.Tensor, reference: torch.Tensor) -> Truth:
    leaf = TruthLeaf(name="output", reference=reference, exact=exact)
    return Truth(kind="float64", tree={"t": 0}, leaves=(leaf,))


def outcome_of(exact, reference, candidate, tolerance=Tolerance(factor=1.0), *, exactly=False):  # noqa: B008 - frozen
    truth = make_truth(exact, reference)
    return compare_outputs(truth, flatten_outputs(candidate), tolerance, "as_given", exact=exactly)[0]


def floor_of(dtype: torch.dtype) -> Floor:
    return FLOORS.get(dtype) or Floor(torch.finfo(dtype).tiny, 4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("size", [1.0, 64.0, 0.125])
def test_the_floor_is_the_border_of_floating_outputs(dtype, size):
    # The truth moves, not the candidate, which cannot be as near to the border.
    candidate = torch.full((300,), size, dtype=torch.float64).to(dtype)
    allowed = floor_of(dtype).atol + floor_of(dtype).rtol * size
    for share, expected in ((0.99, None), (1.01, WRONG)):
        exact = torch.full((300,), size, dtype=torch.float64)
        exact[7] -= allowed * share
        assert outcome_of(exact, exact.to(dtype), candidate, Tolerance(factor=1.0)) == expected


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_few_values_of_8_bits_may_be_one_step_away(dtype):
    exact = torch.randn(8000).to(dtype)
    for count, step, expected in ((8, 1, None), (9, 1, WRONG), (1, 3, WRONG)):
        candidate = exact.clone()
        candidate.view(torch.uint8)[:count] += step
        assert outcome_of(exact.double(), exact, candidate) == expected
    assert outcome_of(exact.double(), exact, candidate, Tolerance(rtol=0.9)) is None


@pytest.mark.parametrize("dtype", FLOATING)
def test_the_factor_times_the_references_error_is_the_border(dtype):
    reference = torch.full((300,), 1 + 3 * floor_of(dtype).rtol, dtype=torch.float64).to(dtype)
    own_error = float(reference[0]) - 1
    for share, expected in ((0.99, None), (1.01, WRONG)):
        exact = torch.ones(300, dtype=torch.float64)
        exact[7] = 1 - 8 * own_error * share
        reference[7] = exact[7].to(dtype)
        assert outcome_of(exact, reference, torch.ones(300, dtype=dtype), Tolerance()) == expected


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("part", ["real", "imag"])
def test_each_part_of_a_complex_output_has_the_border_of_its_floats(dtype, part):
    candidate = torch.full((300,), 1 + 1j, dtype=dtype)
    for share, expected in ((0.99, None), (1.01, WRONG)):
        exact = torch.full((300,), 1 + 1j, dtype=torch.complex128)
        getattr(exact, part)[7] -= floor_of(COMPLEX[dtype]).rtol * share
        assert outcome_of(exact, exact.to(dtype), candidate) == expected


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("end", ["min", "max"])
def test_integers_off_by_one_are_wrong_over_their_whole_range(dtype, end):
    limit = getattr(torch.iinfo(dtype), end)
    values = torch.full((300,), limit, dtype=dtype)
    near = values.clone()
    near[7] = limit - 1 if end == "max" else limit + 1
    assert outcome_of(values, values, values.clone()) is None
    assert outcome_of(values, values, near) is WRONG


def test_a_boolean_is_right_or_wrong():
    values = torch.arange(300) % 2 == 0
    near = values.clone()
    near[7] = ~near[7]
    assert outcome_of(values, values, values.clone()) is None
    assert outcome_of(values, values, near) is WRONG


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_count_in_a_floating_output_is_exact(dtype):
    exact = torch.arange(200, dtype=torch.float64)
    right = exact.to(dtype)
    near = right.clone()
    near[150] = torch.nextafter(near[150].double(), torch.tensor(1e9).double()) if dtype == torch.float64 else 151
    assert outcome_of(exact, right, right.clone(), exactly=True) is None
    assert outcome_of(exact, right, near, exactly=True) is WRONG


def test_count_error_is_within_the_floor_if_exactness_is_not_required():
    exact = torch.full((200,), 1000.0, dtype=torch.float64)
    near = exact.float() * (1 + 1e-6)
    assert outcome_of(exact, exact.float(), near, exactly=False) is None
    assert outcome_of(exact, exact.float(), near, exactly=True) is WRONG


@pytest.mark.parametrize("tolerance", [Tolerance(rtol=1e-3), Tolerance(atol=1e-3)])
def test_problem_with_declared_floors_requires_no_exact_counts(tolerance):
    exact = torch.ones(200, dtype=torch.float64)
    assert outcome_of(exact, exact.float(), exact.float() * (1 + 1e-6), tolerance, exactly=True) is None


def test_zero_has_no_sign_in_a_count():
    exact = torch.zeros(200, dtype=torch.float64)
    assert outcome_of(exact, exact.float(), -exact.float(), exactly=True) is None


@pytest.mark.parametrize(
    ("exact", "reference"),
    [
        (torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.5])),
        (torch.tensor([1.0, 3.0]), torch.tensor([1.0, 3.0000002])),
        (torch.tensor([1.0, 2.0**25]), torch.tensor([1.0, 2.0**25])),
        (torch.tensor([1.0, float("inf")]), torch.tensor([1.0, float("inf")])),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")])),
    ],
    ids=["a fraction", "an inexact reference", "beyond the gapless range", "infinity", "NaN"],
)
def test_number_that_is_no_count_is_compared_with_tolerance(exact, reference):
    assert not is_countable(TruthLeaf(name="output", reference=reference, exact=exact.double()))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factors", [torch.float32, torch.bfloat16, torch.float16])
def test_products_of_zeros_and_ones_are_exact_by_every_honest_route(seed, factors):
    """Coarser factors stand for the formats that matrix units take (TF32 has more bits than bfloat16)."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randint(0, 2, (37, 517), generator=generator).float()
    b = torch.randint(0, 2, (517, 29), generator=generator).float()
    exact = a.double() @ b.double()
    order = torch.randperm(517, generator=generator)
    kept = a.to(factors).float(), b.to(factors).float()
    assert outcome_of(exact, a @ b, kept[0] @ kept[1], exactly=True) is None
    assert outcome_of(exact, a @ b, kept[0][:, order] @ kept[1][order], exactly=True) is None
    split = sum(kept[0][:, part::4] @ kept[1][part::4] for part in range(4))
    assert outcome_of(exact, a @ b, split, exactly=True) is None


def wide_range(elements=4000):
    """Values over some forty orders of magnitude, as an exponential has them."""
    return (torch.randn(elements, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) * 12).exp()


@pytest.mark.parametrize(("share", "expected"), [(0.04, None), (0.06, WRONG)])
def test_small_values_beside_large_ones_may_be_lost_only_here_and_there(share, expected):
    exact = wide_range()
    candidate = exact.float()
    candidate[exact.argsort()[: int(4000 * share)]] = 0
    assert outcome_of(exact, exact.float(), candidate) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_sums_that_cancel_lose_few_elements(dtype):
    generator = torch.Generator().manual_seed(4)
    a, b = torch.randn(60, 300, generator=generator).to(dtype), torch.randn(300, 70, generator=generator).to(dtype)
    exact = a.double() @ b.double()
    split = sum((a[:, part::4].double() @ b[part::4].double()).to(dtype) for part in range(4))
    assert outcome_of(exact, exact.to(dtype), split, Tolerance()) is None


def test_error_shared_by_the_reference_is_not_counted():
    exact = wide_range()
    flushed = torch.where(exact < 1, 0, exact).float()
    assert outcome_of(exact, flushed, flushed.clone()) is None
