"""Facts that a worker tells about a recording: wrong ones end the replay or the candidate, never the evaluator."""

import json
import os
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain import CandidateFailure
from harness.protocol.device_memory import FIRST_ADDRESS
from harness.sandbox.arena_layout import Footprint, Region
from harness.sandbox.gpu.recording import READS_BACK, NotReplayable, make_recording
from harness.sandbox.gpu.worker_memory import export_pages

PAGE = 2 << 20
REPLAYABLE = {
    "has_fixed_addresses": True, "unsupported": [], "memory": [], "outputs": [], "tree": {"t": "tuple"}, "state": [],
    "is_parallel": False,
}  # fmt: skip
FOOTPRINT = Footprint(tree={}, output_specs=(), output=Region(offset=0, size_bytes=0), arena_bytes=PAGE)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


class Worker:
    """Answers with these facts, and can share no memory."""

    arena_address = FIRST_ADDRESS

    def __init__(self, facts):
        self._facts = facts

    def record(self, placed):
        self.descriptors = [open_descriptor() for _ in range(2)]
        return self._facts, self.descriptors

    def share_arena(self):
        return FIRST_ADDRESS, PAGE, open_descriptor()

    def export_pages(self, address):
        raise NotReplayable("it ended")


def open_descriptor():
    return os.open("/dev/null", os.O_RDONLY)


def is_open(descriptor):
    with suppress(OSError):
        os.fstat(descriptor)
        return True
    return False


@settings(max_examples=100)
@given(st.sampled_from(["has_fixed_addresses", "unsupported", "outputs", "tree", "state"]), VALUES)
def test_facts_of_wrong_types_end_in_a_reason_or_a_protocol_failure(name, value):
    worker = Worker(REPLAYABLE | {"memory": [["page", 1]], name: value})
    with pytest.raises((NotReplayable, CandidateFailure)):
        make_recording(worker, None, FOOTPRINT, None, state=(), check=lambda called: called)
    assert not any(map(is_open, worker.descriptors))


@pytest.mark.parametrize("address", [None, "1", 1.5, float("inf"), True, -1, 0, 1 << 64, [1], {}])
def test_an_address_outside_of_the_range_breaks_the_protocol(address):
    def check(called):
        return called

    worker = Worker(REPLAYABLE | {"memory": [[address, 1]], "tree": {"t": "value", "value": None}})
    with pytest.raises(CandidateFailure, match="protocol"):
        make_recording(worker, None, FOOTPRINT, None, state=(), check=check)


def test_pages_are_fetched_once_and_those_of_shared_memory_are_left_out():
    asked, inner = [], open_descriptor()
    pages = {1: [(2 * PAGE, PAGE, 70), (3 * PAGE, PAGE, 71)], 2: [(9 * PAGE, PAGE, 72), (0, PAGE, inner)]}

    def fetch(address):
        asked.append(address)
        return pages[len(asked)]

    addresses = (9 * PAGE, 3 * PAGE, 2 * PAGE, 5)
    found = export_pages(addresses, fetch, (0, PAGE, 60))
    assert found == ([(0, PAGE, 60), (2 * PAGE, PAGE, 70), (3 * PAGE, PAGE, 71), (9 * PAGE, PAGE, 72)], True)
    assert asked == [2 * PAGE, 9 * PAGE]
    assert not is_open(inner)


def test_memory_that_cannot_be_shared_is_noticed():
    assert export_pages([PAGE], lambda _: [], (0, PAGE, 60)) == ([(0, PAGE, 60)], False)


def test_descriptors_are_closed_if_the_worker_fails_between_pages():
    shared, first = open_descriptor(), open_descriptor()
    answers = iter([[(2 * PAGE, PAGE, first)]])
    with pytest.raises(StopIteration):
        export_pages([2 * PAGE, 9 * PAGE], lambda _: next(answers), (0, PAGE, shared))
    assert not is_open(shared)
    assert not is_open(first)


@pytest.mark.parametrize("may_read_back", [False, True])
def test_only_trusted_calls_may_read_values_back(may_read_back):
    worker = Worker(REPLAYABLE | {"memory": [["page", 1]], "unsupported": [READS_BACK]})
    with pytest.raises((NotReplayable, CandidateFailure)) as refused:
        make_recording(
            worker, None, FOOTPRINT, None, state=(), check=lambda called: called, may_read_back=may_read_back
        )
    assert (READS_BACK in str(refused.value)) is not may_read_back


def test_functions_are_kept_of_a_recording_that_is_not_replayable(monkeypatch):
    function = {"name": "scale", "image": 0}
    recorded = {"images": {"0": {"path": "/usr/lib/libcublas.so", "offset": 0, "size": 4}}, "functions": [function]}
    for found, names in ((recorded, ["scale"]), ({}, [])):
        worker = Worker(REPLAYABLE | {"unsupported": ["the call cuLaunchHostFunc is not recorded"]})
        monkeypatch.setitem(globals(), "open_descriptor", lambda found=found: keep(json.dumps(found).encode()))
        with pytest.raises(NotReplayable, match="cuLaunchHostFunc") as refused:
            make_recording(worker, None, FOOTPRINT, None, state=(), check=lambda called: called)
        assert [one.name for one in refused.value.functions] == names
        assert not any(map(is_open, worker.descriptors))


def test_a_worker_that_gives_no_recording_launches_nothing_that_counts():
    worker = Worker({"unsupported": ["the recording could not be written"]})
    worker.record = lambda placed: (worker._facts, [])
    with pytest.raises(NotReplayable) as refused:
        make_recording(worker, None, FOOTPRINT, None, state=(), check=lambda called: called)
    assert refused.value.functions == []


def keep(content):
    descriptor = os.memfd_create("recorded")
    os.write(descriptor, content)
    return descriptor
