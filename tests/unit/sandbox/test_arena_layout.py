"""Where inputs and outputs lie in the shared memory."""

import pytest
import torch

from harness.sandbox.arena_layout import OVERLAY_BYTES, Footprint
from harness.sandbox.devices import INPUT_SLACK_BYTES
from harness.tensors.outputs import FlatOutputs


def measure(elements, slack_bytes):
    tensor = torch.empty(elements, device="meta")
    return Footprint.measure((tensor,), FlatOutputs(tree={"t": 0}, tensors=(tensor,)), {}, slack_bytes=slack_bytes)


@pytest.mark.parametrize(("elements", "slack_bytes"), [(1000, 0), (1000, INPUT_SLACK_BYTES), (OVERLAY_BYTES, 0)])
def test_outputs_lie_behind_the_inputs(elements, slack_bytes):
    footprint = measure(elements, slack_bytes)
    assert footprint.output.offset >= 4 * elements + slack_bytes
    assert footprint.arena_bytes >= footprint.output.offset + footprint.output.size_bytes


def test_large_outputs_on_a_gpu_need_no_memory_of_their_own():
    footprint = measure(OVERLAY_BYTES, INPUT_SLACK_BYTES)
    assert footprint.output.offset == 0
    assert footprint.arena_bytes < 4 * OVERLAY_BYTES + 2 * INPUT_SLACK_BYTES


def test_the_state_of_a_call_has_room_behind_the_inputs():
    tensor, statistics = torch.empty(1000, device="meta"), {f"mean {i}": torch.empty(10) for i in range(200)}
    without, with_state = (
        Footprint.measure((tensor,), FlatOutputs(tree={"t": 0}, tensors=(tensor,)), {}, changing=changing)
        for changing in ({}, {**statistics, "steps": torch.tensor(1)})
    )
    assert with_state.output.offset - without.output.offset >= 200 * 40 + 8
