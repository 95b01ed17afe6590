"""Sums that a reference scatters in 16-bit types on a CPU: rounded as atomic operations of a GPU round them."""

import pytest
import torch

from harness.domain import Tolerance
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.precision import reference_precision
from harness.evaluation.correctness.truth import Truth, TruthLeaf
from harness.tensors.outputs import flatten_outputs

NARROW = (torch.float16, torch.bfloat16)


def draw(dtype):
    source = torch.Generator().manual_seed(1)
    rows = torch.randint(0, 5, (96,), generator=source)
    return torch.randn(5, 8, generator=source).to(dtype), rows, torch.randn(96, 8, generator=source).to(dtype)


def add_one_by_one(into, rows, values):
    for row, value in zip(rows.tolist(), values, strict=True):
        into[row] += value
    return into


def scatter_in_place(into, name, *args, **options):
    getattr(into, name)(*args, **options)
    return into


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    "add",
    [
        lambda into, rows, values: into.index_add(0, rows, values),
        lambda into, rows, values: scatter_in_place(into, "index_add_", 0, rows, values),
        lambda into, rows, values: into.t().contiguous().index_add(1, rows, values.t()).t(),
        lambda into, rows, values: into.scatter_add(0, rows[:, None].expand(-1, 8), values),
        lambda into, rows, values: scatter_in_place(into, "scatter_add_", 0, rows[:, None].expand(-1, 8), values),
        lambda into, rows, values: into.scatter_reduce(0, rows[:, None].expand(-1, 8), values, "sum"),
        lambda into, rows, values: into.scatter(0, rows[:, None].expand(-1, 8), values, reduce="add"),
        lambda into, rows, values: into.index_put((rows,), values, accumulate=True),
        lambda into, rows, values: scatter_in_place(into, "index_put_", (rows,), values, True),
    ],
)
def test_scattered_sums_round_after_each_addition(add, dtype):
    into, rows, values = draw(dtype)
    with reference_precision(False, [values]):
        found = add(into.clone(), rows, values)
    assert torch.equal(found, add_one_by_one(into, rows, values))


@pytest.mark.parametrize(
    "write",
    [
        lambda into, rows, values: into.scatter(0, rows[:3, None].expand(-1, 8), values),
        lambda into, rows, values: into.index_put((rows[:1],), values[:1]),
        lambda into, rows, values: into.scatter_reduce(0, rows[:, None].expand(-1, 8), values, "amax"),
        lambda into, rows, values: into.index_add(0, rows[:0], values[:0]),
        lambda into, rows, values: into.float().index_add(0, rows, values.float()),
        lambda into, rows, values: into.sum(0).index_add(0, rows, values[:, 0]),
    ],
)
def test_other_writes_are_as_they_were(write):
    into, rows, values = draw(torch.float16)
    with reference_precision(False, [values]):
        found = write(into, rows, values)
    assert torch.allclose(found, write(into, rows, values), atol=0.05)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("left_out", "accepted"), [(0, True), (1, False)])
def test_reordered_atomic_additions_are_accepted_and_a_missing_row_is_not(left_out, accepted, dtype):
    torch.manual_seed(1)
    rows, values = torch.randint(0, 16, (1000,)), torch.randn(1000, 64).to(dtype)
    empty, order = torch.zeros(16, 64, dtype=dtype), torch.randperm(1000)[left_out:]
    with reference_precision(False, [values]):
        reference = empty.index_add(0, rows, values)
        found = flatten_outputs(empty.index_add(0, rows[order], values[order]))
    leaf = TruthLeaf(name="output", reference=reference, exact=empty.double().index_add(0, rows, values.double()))
    truth = Truth(kind="float64", tree=found.tree, leaves=(leaf,))
    outcome, _ = compare_outputs(truth, found, Tolerance(), "as_given")
    assert (outcome is None) is accepted
