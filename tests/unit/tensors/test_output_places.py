"""Changed memory is reused if a later output lies in all of it, outside of the inputs, or if outputs move elsewhere."""

import pytest

from harness.protocol import TensorSpec
from harness.tensors.outputs import MOST_MOVES, Change, OutputPlaces, TensorRecord

NOTHING = TensorRecord(0)
ARENA = (0, 1000)


def spec(elements):
    return TensorSpec(dtype="float32", shape=(elements,), stride=(1,))


def make_places_after_moves():
    """All moves that are allowed have happened."""
    places = OutputPlaces(ARENA)
    for call in range(MOST_MOVES):
        places.note_call([spec(10)], [20_000])
        places.note_call([spec(10)], [30_000 + 1000 * call])
        places.classify_spans(places.calls - 1, [(20_000, 20_040)])
    return places


def test_work_memory_may_overwrite_outputs_of_few_calls():
    """A compiled program runs once, then records a graph, whose outputs lie elsewhere."""
    places = OutputPlaces(ARENA)
    changes = []
    for call in range(MOST_MOVES + 1):
        places.note_call([spec(10)], [20_000 + 1000 * call])
        kept = places.keep(NOTHING)
        places.note_call([spec(10)], [8000])
        changes += [places.classify(kept, [0]), places.classify(kept, [0])]
    assert changes == [Change.REUSED] * 2 * MOST_MOVES + [Change.OVERWRITTEN] * 2


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
    places = make_places_after_moves()
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
    places = make_places_after_moves()
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
