"""Which checks fit into a device's memory."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.evaluation.memory_plan import (
    MemoryNeed,
    count_device_bytes,
    fits,
    plan_in_full,
    plan_lean,
    plan_memory,
    plan_smallest,
)
from harness.sandbox.memory_limits import USABLE_SHARE, Room

GIB = 1 << 30
sizes = st.integers(0, 64 * GIB)
needs = st.builds(
    MemoryNeed,
    inputs_bytes=sizes,
    outputs_bytes=sizes,
    weights_bytes=sizes,
    arena_bytes=sizes,
    work_bytes=sizes,
    float64_bytes=sizes,
    mixing_bytes=sizes,
    slice_bytes=st.integers(0, GIB),
    context_bytes=st.integers(0, GIB),
    kept_calls=st.integers(2, 8),
    further_steps=st.integers(0, 12),
)
SMALL = MemoryNeed(
    **dict.fromkeys(
        ("inputs_bytes", "outputs_bytes", "arena_bytes", "work_bytes", "float64_bytes", "mixing_bytes", "slice_bytes"),
        0,
    ),
    weights_bytes=68,
    context_bytes=0,
    kept_calls=2,
)
rooms = st.builds(Room, device_bytes=sizes, host_bytes=sizes, is_shared=st.booleans())


def worth(plan):
    checks = (plan.inputs_on_device, plan.baseline_beside, plan.timed_outputs, plan.roofline, plan.probes, plan.stress)
    return (plan.trials, plan.float64, plan.kept_calls, *checks)


@given(needs, rooms)
def test_a_plan_fits_into_the_room_that_it_was_made_for(need, room):
    plan = plan_memory(need, room)
    assert plan is None or fits(plan, need, room)
    if plan is not None:
        assert plan.device_bytes == count_device_bytes(plan, need) <= USABLE_SHARE * room.device_bytes


@given(needs, rooms)
def test_there_is_a_plan_wherever_the_smallest_or_the_full_one_fits(need, room):
    either = any(fits(plan_smallest(need, holds), need, room) for holds in ("device", "host"))
    assert (plan_memory(need, room) is not None) == either


def rank(plan):
    """In the order of `CHECKS`."""
    trials, float64, kept_calls, inputs_on_device, baseline_beside, *checks, stress = worth(plan)
    before = (trials, float64, stress, plan.own_first, min(kept_calls, 2), inputs_on_device, baseline_beside)
    return (*before, kept_calls, *checks)


@given(needs, rooms)
@example(SMALL, Room(device_bytes=161, host_bytes=0, is_shared=False))
def test_where_everything_fits_nothing_is_reduced(need, room):
    full = plan_in_full(need)
    plan = plan_memory(need, room)
    assert (plan == full) == fits(full, need, room)
    assert full.describe_reductions(full) == ()
    # Truths that are always computed reduce no check.
    slower = {"own_first": True, "device_bytes": full.device_bytes}
    is_whole = plan is not None and replace(plan, **slower) == full
    assert plan is None or is_whole or plan.describe_reductions(full)


@given(needs, rooms, sizes, sizes)
def test_more_room_never_costs_the_most_important_check_that_fitted(need, room, more_device, more_host):
    larger = replace(room, device_bytes=room.device_bytes + more_device, host_bytes=room.host_bytes + more_host)
    plan, other = plan_memory(need, room), plan_memory(need, larger)
    assert plan is None or (other is not None and rank(other) >= rank(plan))


@given(needs, rooms)
def test_check_is_skipped_only_if_it_does_not_fit_in_memory(need, room):
    plan = plan_memory(need, room)
    if plan is not None and not plan.stress:
        assert not fits(replace(plan, stress=True), need, room)


@given(needs, rooms)
def test_a_repetition_leaves_out_no_check_that_costs_nothing_beside_the_worker(need, room):
    plan = plan_lean(need, room)
    assert (plan is None) == (not fits(plan_smallest(need), need, room))
    if plan is None:
        return
    assert fits(plan, need, room)
    assert not plan.baseline_beside
    assert not plan.probes
    for check in ("float64", "stress", "roofline"):
        assert getattr(plan, check) or not fits(replace(plan, **{check: True}), need, room)
    if plan.kept_calls > 1 or plan.inputs_on_device:
        assert 2 * need.count_worker_bytes(plan.kept_calls) <= room.device_bytes


def test_running_out_of_memory_on_purpose_buys_no_lenient_verdict():
    need = MemoryNeed(
        inputs_bytes=GIB, outputs_bytes=GIB, weights_bytes=0, arena_bytes=2 * GIB, float64_bytes=8 * GIB, kept_calls=2
    )
    plan = plan_lean(need, Room(device_bytes=79 * GIB, host_bytes=100 * GIB))
    assert worth(plan) == (3, True, 2, True, False, False, True, False, True)


@given(sizes, sizes, sizes)
def test_the_smallest_plan_takes_no_more_than_inputs_two_outputs_and_weights(inputs, outputs, weights):
    need = MemoryNeed(
        inputs_bytes=inputs, outputs_bytes=outputs, weights_bytes=weights, arena_bytes=max(inputs + outputs, weights)
    )
    assert plan_smallest(need).device_bytes <= inputs + 2 * outputs + weights + max(weights - inputs - outputs, 0)


@pytest.mark.parametrize(
    ("free_gib", "holds", "checks"),
    [
        (400, "device", (3, True, 2, True, True, True, True, True, True)),
        (140, "device", (3, True, 2, True, True, False, True, True, True)),
        (79, "device", (3, False, 2, True, False, False, True, False, True)),
        (44, "host", (3, True, 2, False, False, False, True, False, False)),
        (30, "host", (3, False, 1, False, False, False, False, False, False)),
        (27, None, None),
    ],
)
def test_eight_gib_in_and_out_give_up_checks_one_after_another(free_gib, holds, checks):
    need = MemoryNeed(
        inputs_bytes=8 * GIB, outputs_bytes=8 * GIB, weights_bytes=0, arena_bytes=16 * GIB, float64_bytes=32 * GIB,
        context_bytes=GIB, mixing_bytes=16 * GIB, further_steps=6,
    )  # fmt: skip
    plan = plan_memory(need, Room(device_bytes=free_gib * GIB, host_bytes=300 * GIB))
    assert (None if plan is None else plan.holds) == holds
    assert (None if plan is None else worth(plan)) == checks


def test_many_earlier_outputs_do_not_take_the_place_of_the_baselines_worker():
    size = 6 * GIB
    need = MemoryNeed(
        inputs_bytes=size, outputs_bytes=size, weights_bytes=0, arena_bytes=size, float64_bytes=4 * size,
        context_bytes=GIB, slice_bytes=GIB, kept_calls=8, row_steps=1, further_steps=6,
    )  # fmt: skip
    plans = [plan_memory(need, Room(device_bytes=free_gib * GIB, host_bytes=0)) for free_gib in range(62, 200, 2)]
    assert all(plan.baseline_beside for plan in plans)
    assert [plan.kept_calls for plan in plans] != [2] * len(plans)


def test_largest_elementwise_kernelbench_problems_fit_80_gb_in_float64():
    size = 6 * GIB
    need = MemoryNeed(
        inputs_bytes=size, outputs_bytes=size, weights_bytes=0, arena_bytes=2 * size, float64_bytes=4 * size,
        context_bytes=GIB, further_steps=6,
    )  # fmt: skip
    plan = plan_memory(need, Room(device_bytes=79 * GIB, host_bytes=0))
    assert (plan.holds, plan.float64, plan.stress, plan.baseline_beside) == ("device", True, True, True)


def test_memory_plan_describes_its_reductions():
    need = MemoryNeed(inputs_bytes=8, outputs_bytes=8, weights_bytes=0, arena_bytes=16)
    words = plan_smallest(need).describe_reductions(plan_in_full(need))
    assert "2 of 3 inputs as given" in words
    assert "earlier outputs compared again for 0 of 1 calls" in words
