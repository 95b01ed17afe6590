"""Recorded copies and sets reach the recorded program's device memory only."""

import struct

import pytest

from harness.protocol.device_memory import FIRST_ADDRESS, RANGE_BYTES
from harness.worker.recorder.device_spans import DeviceSpans, require_portable
from harness.worker.recorder.driver_calls import DriverError

HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4
GLOBAL = 0x7F0000000000, 64


@pytest.fixture
def spans():
    return DeviceSpans([GLOBAL])


def side(address, *, kind=DEVICE, x=0, y=0, z=None, pitch=1024, height=0):
    first = [x, y] if z is None else [x, y, z, 0]
    last = [pitch] if z is None else [0, pitch, height]
    return struct.pack(f"={len(first)}Qi4x{3 + len(last)}Q", *first, kind, 0, address, 0, *last)


def copy2d(one, other, width=512, rows=4):
    return one + other + struct.pack("=2Q", width, rows)


def copy3d(one, other, sizes=(512, 4, 2)):
    return one + other + struct.pack("=3Q", *sizes)


def test_copies_within_device_memory_are_kept(spans):
    near_end = FIRST_ADDRESS + RANGE_BYTES - 3 * 1024 - 512
    for packed in (
        copy2d(side(FIRST_ADDRESS), side(near_end, kind=UNIFIED)),
        copy2d(side(GLOBAL[0], pitch=16), side(FIRST_ADDRESS), width=16),
    ):
        assert spans.require_copy2d(packed) == packed
    packed = copy3d(side(FIRST_ADDRESS, z=0, height=8), side(FIRST_ADDRESS, x=64, y=2, z=3, height=8))
    assert spans.require_copy3d(packed) == packed
    spans.require_rows(FIRST_ADDRESS, 0, 4096, 1)


@pytest.mark.parametrize(
    "bad",
    [
        side(FIRST_ADDRESS, kind=HOST),
        side(FIRST_ADDRESS, kind=ARRAY),
        side(0x7FFD00001000, kind=UNIFIED),
        side(FIRST_ADDRESS + RANGE_BYTES - 512),
        side(FIRST_ADDRESS, x=RANGE_BYTES),
        side(FIRST_ADDRESS, y=2**63),
        side(FIRST_ADDRESS, pitch=2**62),
        side(FIRST_ADDRESS - 1),
        side(GLOBAL[0]),
    ],
)
def test_copies_of_other_memory_are_refused(spans, bad):
    for sides in ((bad, side(FIRST_ADDRESS)), (side(FIRST_ADDRESS), bad)):
        with pytest.raises(DriverError, match="device"):
            spans.require_copy2d(copy2d(*sides))


@pytest.mark.parametrize("changes", [{"z": 1 << 40}, {"y": 1 << 40}, {"height": 1 << 60}, {"kind": HOST}])
def test_copies_in_three_dimensions_of_other_memory_are_refused(spans, changes):
    bad, good = side(FIRST_ADDRESS, **({"z": 0, "height": 8} | changes)), side(FIRST_ADDRESS, z=0, height=8)
    for sides in ((bad, good), (good, bad)):
        with pytest.raises(DriverError, match="device"):
            spans.require_copy3d(copy3d(*sides))


def test_other_sizes_and_attributes_that_hold_handles_are_refused(spans):
    with pytest.raises(DriverError, match="form"):
        spans.require_copy2d(b"\0" * 120)
    with pytest.raises(DriverError, match="beyond"):
        spans.require(FIRST_ADDRESS, -1)
    for attribute in (7, 12, 13, 99):
        with pytest.raises(DriverError, match=str(attribute)):
            require_portable(attribute)
    require_portable(6)
