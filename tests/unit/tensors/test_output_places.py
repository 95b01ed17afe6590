"""Changed memory is reused only if a later output lies in all of it, outside of the inputs."""

import pytest

from harness.protocol import TensorSpec
from harness.tensors.output_places import Change, OutputPlaces
from harness.tensors.output_records import TensorRecord

NOTHING = TensorRecord(0)
ARENA = (0, 1000)


def spec(elements):
    return TensorSpec(dtype="float32", shape=(elements,), stride=(1,))


@pytest.mark.parametrize(
    ("later", "change"),
    [
        ([[(4000, 10)]], Change.REUSED),
        ([[(8000, 10)], [(4000, 10)], [(8000, 10)]], Change.REUSED),  # buffers in turn
        ([[(3600, 1000)]], Change.REUSED),  # a longer output
        ([[(8000, 10), (4000, 10)]], Change.REUSED),
        ([], Change.OVERWRITTEN),
        ([[(8000, 10)]], Change.OVERWRITTEN),
        ([[(4004, 10)]], Change.OVERWRITTEN),
        ([[(4000, 9)]], Change.OVERWRITTEN),
    ],
)
def test_memory_is_reused_if_a_later_output_lies_in_all_of_it(later, change):
    places = OutputPlaces(ARENA)
    places.note_call([spec(10)], [4000])
    kept = places.keep(NOTHING)
    for outputs in later:
        places.note_call([spec(size) for _, size in outputs], [address for address, _ in outputs])
    assert places.classify(kept, [0]) is change
    assert places.classify(kept, []) is Change.NONE


def test_memory_of_earlier_outputs_is_not_reused_by_themselves():
    places = OutputPlaces(ARENA)
    for _ in range(3):
        places.note_call([spec(10)], [4000])
    assert places.classify(places.keep(NOTHING), [0]) is Change.OVERWRITTEN


def test_each_changed_output_must_be_reused():
    places = OutputPlaces(ARENA)
    places.note_call([spec(10), spec(10)], [4000, 8000])
    kept = places.keep(NOTHING)
    places.note_call([spec(10), spec(10)], [4000, 12000])
    assert places.classify(kept, [0]) is Change.REUSED
    assert places.classify(kept, [0, 1]) is Change.OVERWRITTEN


@pytest.mark.parametrize("address", [0, 500, 996])
def test_memory_of_inputs_is_no_reused_output(address):
    places = OutputPlaces(ARENA)
    places.note_call([spec(10)], [address])
    kept = places.keep(NOTHING)
    places.note_call([spec(10)], [address])
    assert places.classify(kept, [0]) is Change.OVERWRITTEN
