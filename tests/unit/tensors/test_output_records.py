"""Records of earlier tensors notice every change of a bit, also where they keep only digests."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.tensors import outputs
from harness.tensors.outputs import TensorRecord

DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int64", "int8", "bool", "complex128")


@pytest.fixture(params=["kept", "digests"])
def kept_bytes(request, monkeypatch):
    monkeypatch.setattr(outputs, "KEPT_BYTES", 1 << 30 if request.param == "kept" else 0)
    monkeypatch.setattr(outputs, "ROW_WORDS", 64)
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_changed_bit_is_noticed(kept_bytes, dtype):
    tensor = torch.randint(0, 2, (200,)).to(getattr(torch, dtype))
    record = TensorRecord.of([tensor.clone()])
    assert not record.list_changed([tensor])
    for at in (0, 63, 64, 199):
        changed = tensor.clone()
        changed.view(torch.uint8).view(200, -1)[at, -1] ^= 1
        assert record.list_changed([changed]), at
        difference = record.find_difference([changed])
        assert str(difference).startswith("some of 200" if kept_bytes == "digests" else "1 of 200"), at


@pytest.mark.parametrize("dtype", DTYPES)
def test_digests_do_not_depend_on_how_many_rows_are_read_at_once(monkeypatch, dtype):
    monkeypatch.setattr(outputs, "ROW_WORDS", 64)
    for count in (1, 63, 257, 1000):
        tensor = torch.randint(0, 2, (count,)).to(getattr(torch, dtype))
        one = outputs._digest(tensor)
        monkeypatch.setitem(outputs.ROWS_AT_ONCE, "cpu", 4)
        assert torch.equal(outputs._digest(tensor), one)
        monkeypatch.setitem(outputs.ROWS_AT_ONCE, "cpu", 1)


def test_equal_bits_have_no_difference(kept_bytes):
    tensors = [torch.tensor([0.0, float("nan")]), torch.empty(0), torch.randn(7, 5).t()]
    assert TensorRecord.of(tensors).find_difference([tensor.clone() for tensor in tensors]) is None


def test_zero_and_minus_zero_differ(kept_bytes):
    assert TensorRecord.of([torch.zeros(100)]).list_changed([-torch.zeros(100)])


def test_exchanged_slices_are_noticed(kept_bytes):
    tensor = torch.randn(128)
    record = TensorRecord.of([tensor.clone()])
    assert record.list_changed([torch.cat([tensor[64:], tensor[:64]])])


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=300), st.integers(0, 299), st.integers(1, 2**31))
def test_any_other_number_is_noticed(numbers, at, more):
    tensor = torch.tensor(numbers, dtype=torch.int64)
    record = TensorRecord(len(numbers), digests=(outputs._digest(tensor),))
    tensor[at % len(numbers)] += more
    assert record.list_changed([tensor])


def test_parts_of_a_tensor_that_begin_at_an_odd_byte_are_read(kept_bytes):
    tensor = torch.randint(0, 255, (101,), dtype=torch.uint8)
    record = TensorRecord.of([tensor[1:]])
    assert not record.list_changed([tensor[1:].clone()])


@pytest.mark.parametrize("make", [lambda t: t[:, 0], lambda t: t[:, -1:], lambda t: t.t(), lambda t: t[::2, ::3]])
def test_strides_are_free(kept_bytes, make):
    tensor = torch.randn(300, 5, dtype=torch.float64)
    record = TensorRecord.of([make(tensor)])
    assert not record.list_changed([make(tensor).contiguous()])
    assert record.find_difference([make(tensor)]) is None
