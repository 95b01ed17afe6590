"""What a recording says of its code: what the evaluator and the replayer could read differently is refused."""

import hashlib
import json
import os
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sandbox.gpu.recorded_code import MalformedRecording, RecordedFunction, read_functions

IMAGES = {"0": {"path": "", "offset": 2, "size": 4}, "7": {"path": "/usr/lib/libcublas.so", "offset": 9, "size": 9}}
FUNCTIONS = [{"image": 0, "name": "_Z5scalePff"}, {"image": 7, "name": "sgemm"}, {"image": -1, "name": "unseen"}]
CODE = b"..code.."


@contextmanager
def keep(content):
    descriptor = os.memfd_create("recorded")
    os.write(descriptor, content)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read(found):
    with keep(json.dumps(found).encode()) as recording, keep(CODE) as blob:
        return read_functions(recording, blob)


def test_each_function_has_its_code():
    assert read({"images": IMAGES, "functions": FUNCTIONS}) == [
        RecordedFunction("_Z5scalePff", "", b"code"),
        RecordedFunction("sgemm", "/usr/lib/libcublas.so", b""),
        RecordedFunction("", "", b""),
    ]


def test_code_has_the_description_by_its_digest():
    said = {hashlib.sha256(b"code").hexdigest(): "{}", hashlib.sha256(b"").hexdigest(): "of nothing"}
    found = read({"images": IMAGES, "functions": FUNCTIONS, "compilations": said})
    assert [one.compilation for one in found] == ["{}", "", ""]


@pytest.mark.parametrize(
    "change",
    [
        {"compilations": {hashlib.sha256(b"code").hexdigest(): 1}},
        {"compilations": "none"},
        {"images": IMAGES | {"00": IMAGES["7"]}},
        {"images": IMAGES | {" 0": IMAGES["7"]}},
        {"images": IMAGES | {"0": IMAGES["0"] | {"size": 7}}},
        {"images": IMAGES | {"0": IMAGES["0"] | {"size": 1 << 60}}},
        {"images": IMAGES | {"0": IMAGES["0"] | {"offset": -2}}},
        {"images": IMAGES | {"0": IMAGES["0"] | {"offset": True}}},
        {"images": IMAGES | {"0": IMAGES["0"] | {"offset": 1 << 70}}},
        {"images": IMAGES | {"0": IMAGES["0"] | {"path": None}}},
        {"images": {str(at): IMAGES["0"] for at in range(9)}},
        {"functions": [{"image": 0, "name": "theirs\0 mine"}]},
        {"functions": [{"image": 0, "name": "m\u00efne"}]},
        {"functions": [{"image": 0, "name": ""}]},
        {"functions": [{"image": 0, "name": "a" * (3 << 20)}]},
        {"functions": [{"image": False, "name": "mine"}]},
        {"functions": [{"image": 1, "name": "mine"}]},
    ],
)
def test_a_recording_that_could_be_read_in_two_ways_is_malformed(change):
    with pytest.raises(MalformedRecording):
        read({"images": IMAGES, "functions": FUNCTIONS} | change)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100)
@given(st.sampled_from(["images", "functions"]), VALUES)
def test_values_of_wrong_types_are_malformed_or_empty(name, value):
    try:
        read({"images": IMAGES, "functions": FUNCTIONS} | {name: value})
    except MalformedRecording:
        return
    assert name == "functions"
    assert not value
