"""Equality to the last bit, and the words for what differs."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch

from harness.tensors.outputs import find_difference, mostly_differ
from harness.tensors.values import cut_slices, has_same_bits

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [([NAN, 1.0], [NAN, 1.0], True), ([0.0], [-0.0], False), ([1.0], [1.0000001], False), ([], [], True)],
)
def test_bits_decide_not_values(a, b, same):
    assert has_same_bits(torch.tensor(a), torch.tensor(b)) is same


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8, torch.bool, torch.complex64])
def test_the_difference_counts_elements_over_all_tensors(dtype):
    one, other = torch.ones(2, 3, dtype=dtype), torch.ones(4, dtype=dtype)
    changed = one.clone()
    changed[1, 2] = 0
    difference = find_difference([changed, other], [one, other.clone()])
    assert (difference.differing, difference.elements, difference.largest) == (1, 10, 1.0)
    assert str(difference) == "1 of 10 elements differ, by up to 1"


def test_equal_tensors_have_no_difference():
    values = torch.randn(5).t()
    assert find_difference([values], [values.clone()]) is None
    assert find_difference([], []) is None


@pytest.mark.parametrize(("now", "before"), [(NAN, 1.0), (1.0, INF), (INF, -INF)])
def test_a_difference_that_is_no_number_is_infinite(now, before):
    assert find_difference([torch.tensor([now])], [torch.tensor([before])]).largest == INF


def test_strides_make_no_difference():
    values = torch.randn(4, 5)
    assert find_difference([values.t().contiguous().t()], [values]) is None


def test_a_scalar_has_one_element():
    assert find_difference([torch.tensor(2.0)], [torch.tensor(1.0)]).differing == 1


@pytest.mark.parametrize("elements", [1, 3, 7, 50, 1000])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_slices_put_together_are_the_tensor_in_row_major_order(elements, order):
    tensor = torch.arange(5 * 7 * 3).view(5, 7, 3).permute(order)
    parts = list(cut_slices(tensor, elements=elements, whole_bytes=0))
    assert torch.equal(torch.cat([part for _, (part,) in parts]), tensor.reshape(-1))
    assert [first for first, _ in parts] == list(range(0, tensor.numel(), elements))


MEASURE = """
import sys, torch
from harness.evaluation.correctness.comparison import are_surely_close, compare_outputs
from harness.tensors.values import has_same_bits
from harness.tensors.outputs import find_difference, mostly_differ
from harness.tensors.outputs import FlatOutputs
from harness.evaluation.correctness.truth import trust_outputs
from harness.evaluation.correctness.reference_checks import has_only_numbers
from harness.domain import Tolerance

def peak_bytes():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) << 10

def measure(run):
    open("/proc/self/clear_refs", "w").write("5")
    before = peak_bytes()
    run()
    return peak_bytes() - before

torch.set_num_threads(1)
one = torch.ones(DTYPE_COUNT, dtype=torch.DTYPE).view(4, -1, 4096).permute(1, 0, 2)
other = one.clone()
other[-1, -1, -1] = 2
own, found = (FlatOutputs(tree={"t": 0}, tensors=(tensor,)) for tensor in (one, other))
runs = {
    "bits": lambda: has_same_bits(one, other),
    "difference": lambda: find_difference([one], [other]),
    "numbers": lambda: has_only_numbers(own),
    "close": lambda: are_surely_close(own, found, Tolerance()),
    "evaluated": lambda: compare_outputs(trust_outputs(own), found, Tolerance(), "integers", exact=True),
}
for name, run in runs.items():
    print(name, measure(run))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "count"), [("float16", 128 << 20), ("int64", 32 << 20)])
def test_comparing_takes_little_memory_beside_the_tensors(dtype, count):
    source = MEASURE.replace("DTYPE_COUNT", str(count)).replace("DTYPE", dtype).replace("torch.DTYPE", f"torch.{dtype}")
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    taken = {name: int(size) for name, size in map(str.split, done.stdout.splitlines())}
    assert len(taken) == 5
    assert all(size < 280 << 20 for size in taken.values()), taken  # the tensors have 256 MiB each


@pytest.mark.parametrize(
    ("expected", "found", "differ"),
    [
        ([1.0, -2.0, 3.0], [NAN, NAN, 3.0], True),
        ([1.0, -2.0, 3.0], [9.0, -9.0, 3.0], True),
        ([1.0, -2.0, 3.0], [3.0, 1.0, NAN], False),
        ([NAN, INF, -INF, 1.0], [NAN, INF, -INF, 1.0], False),
        ([INF, INF, 1.0], [1.0, 1.0, 1.0], True),
        ([0.0, 0.0], [0.0, 0.0], False),
        ([], [], False),
    ],
)
def test_outputs_mostly_differ_if_most_are_off_by_more_than_the_largest(expected, found, differ):
    assert mostly_differ([torch.tensor(expected)], [torch.tensor(found)]) is differ


def test_outputs_of_8_bits_are_compared_too():
    expected = torch.tensor([1.0, -2.0, 3.0]).to(torch.float8_e4m3fn)
    assert not mostly_differ([expected], [expected.clone()])
    assert mostly_differ([expected], [torch.tensor([9.0, -9.0, 3.0]).to(torch.float8_e4m3fn)])


def test_integers_never_mostly_differ():
    assert not mostly_differ([torch.arange(5)], [torch.full((5,), 100)])
