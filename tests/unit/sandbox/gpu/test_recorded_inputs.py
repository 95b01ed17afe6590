"""Where inputs and state of a replay are written, in this process's memory, and whose code a recording has."""

import math
from dataclasses import replace

import pytest
import torch

from harness.protocol.tensor_layout import place_strided
from harness.sandbox.gpu.recording import NotReplayable, Recording
from harness.sandbox.worker_client import Called, PlacedInputs, describe

INPUTS_AT, OUTPUT_AT, STATE_AT = 0x1000, 0x2000, 0x2100


class Pages:
    def __init__(self):
        self.bytes = torch.zeros(0x4000, dtype=torch.uint8)

    def view(self, address, size_bytes):
        return self.bytes[address : address + size_bytes]

    def floats(self, address, count):
        return self.view(address, 4 * count).view(torch.float32)


def place(*tensors):
    specs, _ = place_strided([describe(tensor) for tensor in tensors])
    return PlacedInputs(tree={"t": 0}, specs=specs, tensors=tensors, seed=None)


def record(placed, output=torch.zeros(4)):  # noqa: B008 - only its form matters
    """Of a call with one output and two numbers of state, which it also returns."""
    outputs = output, torch.zeros(2)
    called = Called(
        reported_us=1.0,
        at_ns=0,
        tree={"dict": [["output", {"t": 0}], ["state", {"dict": [["count", {"t": 1}]]}]]},
        specs=tuple(map(describe, outputs)),
        devices=("cuda", "cuda"),
        addresses=(OUTPUT_AT, STATE_AT),
    )
    return Recording(
        descriptors=(0, 0),
        pages=Pages(),
        placed=placed,
        inputs_at=INPUTS_AT,
        state_at=(STATE_AT,),
        is_parallel=False,
        reads_back=False,
        called=called,
        client=None,
        views=frozenset({1}),
    )


def test_outputs_are_filled_except_those_that_are_state():
    placed = place(torch.arange(4.0))
    recording = record(placed)
    recording.pages.floats(OUTPUT_AT, 4).fill_(9.0)  # as the last replay left it
    recording.write_inputs(placed, [torch.tensor([5.0, 7.0])])
    assert recording.pages.floats(INPUTS_AT, 4).tolist() == [0, 1, 2, 3]
    assert recording.pages.floats(STATE_AT, 2).tolist() == [5, 7]
    assert not (recording.pages.floats(OUTPUT_AT, 4) == 9.0).any()


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32, torch.bfloat16])
def test_outputs_are_filled_with_values_that_no_program_knows(dtype):
    placed = place(torch.arange(4.0))
    recording, found = record(placed, torch.zeros(4, dtype=dtype)), set()
    for _ in range(40):
        recording.write_inputs(placed, [torch.zeros(2)])
        found.add(int(recording.pages.view(OUTPUT_AT, 1)))
    assert len(found) >= 6
    if dtype.is_floating_point:  # NaN may be right, and so may any number
        values = {float(torch.tensor([one] * 8, dtype=torch.uint8).view(dtype)[0]) for one in found}
        assert any(map(math.isnan, values)) and all(math.isnan(one) or 1 < abs(one) < 2e5 for one in values)


def test_each_float_is_filled_with_a_value_of_its_own():
    placed = place(torch.arange(4.0))
    recording = record(placed, torch.zeros(32))
    recording.write_inputs(placed, [torch.zeros(2)])
    found = recording.pages.floats(OUTPUT_AT, 32)
    assert 4 < found.isnan().sum() < 28 and len(found[~found.isnan()].unique()) == 1


def test_each_boolean_is_filled_with_a_value_of_its_own():
    placed, count = place(torch.arange(4.0)), STATE_AT - OUTPUT_AT
    recording = record(placed, torch.zeros(count, dtype=torch.bool))
    recording.write_inputs(placed, [torch.zeros(2)])
    found = recording.pages.view(OUTPUT_AT, count)
    assert set(found.tolist()) == {0, 1} and count // 4 < found.sum() < 3 * count // 4


@pytest.mark.parametrize("address", [INPUTS_AT, STATE_AT])
def test_outputs_in_the_memory_of_inputs_or_state_destroy_these(address):
    placed = place(torch.arange(4.0))
    recording = record(placed)
    recording = replace(recording, called=replace(recording.called, addresses=(address, STATE_AT)))
    recording.write_inputs(placed, [torch.tensor([5.0, 7.0])])
    assert not {0.0, 1.0, 5.0, 7.0}.intersection(recording.pages.floats(address, 2).tolist())


def test_state_that_a_call_leaves_elsewhere_is_filled():
    placed = place(torch.arange(4.0))
    recording = record(placed)
    elsewhere = STATE_AT + 0x100
    recording = replace(recording, called=replace(recording.called, addresses=(OUTPUT_AT, elsewhere)))
    recording.pages.floats(elsewhere, 2).fill_(9.0)  # as the last replay left it
    recording.write_inputs(placed, [torch.tensor([5.0, 7.0])])
    assert not (recording.pages.floats(elsewhere, 2) == 9.0).any()
    assert recording.pages.floats(STATE_AT, 2).tolist() == [5, 7]


def test_run_reports_changed_inputs_but_not_changed_state():
    placed = place(torch.arange(4.0))
    recording = record(placed)
    recording.write_inputs(placed, [torch.ones(2)])
    recording.pages.floats(STATE_AT, 2).fill_(9.0)
    run = recording.describe_run(placed)
    assert run.inputs_unchanged
    assert run.outputs.tensors[1].tolist() == [9, 9]
    recording.pages.floats(INPUTS_AT, 4)[2] = 0.5
    assert not recording.describe_run(placed).inputs_unchanged


def test_inputs_of_another_form_and_missing_state_are_refused():
    recording = record(place(torch.arange(4.0)))
    with pytest.raises(NotReplayable, match="change from call to call"):
        recording.write_inputs(place(torch.arange(5.0)), [torch.ones(2)])
    with pytest.raises(ValueError, match="shorter"):
        recording.write_inputs(place(torch.arange(4.0)), [])


def test_pages_that_follow_each_other_are_one_piece_of_memory():
    recording = record(place(torch.arange(4.0)))
    recording.pages.pages = [(0x1000, 0x800, 0), (0x2800, 0x800, 0), (0x2000, 0x800, 0)]
    found = [(address, piece.numel()) for address, piece in recording.view_memory()]
    assert found == [(0x1000, 0x800), (0x2000, 0x1000)]


@pytest.mark.parametrize("with_inputs", [True, False])
def test_given_memory_is_that_of_inputs_and_state(with_inputs):
    recording = record(place(torch.arange(4.0), torch.zeros(2, dtype=torch.int64)))
    *inputs, state = recording.list_given(with_inputs=with_inputs)
    assert state == (STATE_AT, 8)
    assert [size for _, size in inputs] == ([16, 16] if with_inputs else [])
    assert all(INPUTS_AT <= address < OUTPUT_AT for address, _ in inputs)
