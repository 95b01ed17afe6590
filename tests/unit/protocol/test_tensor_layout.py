from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import WireError
from harness.protocol import ITEM_BYTES, TensorSpec, flatten_value, place_contiguous, rebuild_value, storage_bytes
from harness.protocol.tensor_layout import ALIGNMENT_BYTES, MOST_WORDS, place_strided, row_major_stride, take_values


class Tensor:
    """Stands for a tensor: this room knows none."""


def is_tensor(value):
    return isinstance(value, Tensor)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS | st.builds(Tensor),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=15,
)
SHAPES = st.lists(st.integers(0, 6), max_size=4)
SPECS = st.builds(
    lambda dtype, shape: TensorSpec(dtype=dtype, shape=tuple(shape), stride=row_major_stride(shape)),
    st.sampled_from(sorted(ITEM_BYTES)),
    SHAPES,
)
JUNK = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(VALUES)
def test_any_nesting_comes_back_as_it_was(value):
    tree, tensors = flatten_value(value, is_tensor)
    assert rebuild_value(tree, tensors) == value


@given(VALUES)
def test_numbers_that_follow_later_are_not_in_the_tree(value):
    tree, tensors = flatten_value(value, is_tensor)
    words = []
    announced = take_values(tree, words)
    assert rebuild_value(announced, tensors, words=words) == value
    assert all(0 <= word < 1 << 64 for word in words) and len(words) <= MOST_WORDS


def test_two_calls_that_differ_in_values_have_one_tree():
    values = (0.5, "one text", 1 << 70), (2.5, "another ", -(1 << 70))
    trees = [flatten_value([3, {"a": number}, True, text, long], is_tensor)[0] for number, text, long in values]
    words = [[], []]
    announced = [take_values(*pair) for pair in zip(trees, words, strict=True)]
    nodes = [{"int": 0}, {"dict": [["a", {"float": 1}]]}, {"v": True}, {"str": [2, 2]}, {"long": [4, 2]}]
    assert announced == [{"list": nodes}] * 2
    assert words[0] != words[1] and len(words[0]) == 6


@pytest.mark.parametrize("value", ["", "\0", "\1\0", "é" * 9, 2**63, -(2**63) - 1, 2**64, 2**127, -(2**127)])
def test_strings_and_long_numbers_come_back_from_words(value):
    words = [7]
    announced = take_values(flatten_value((value,), is_tensor)[0], words)
    assert len(words) > 1 and rebuild_value(announced, [], words=words) == (value,)
    assert rebuild_value(announced, [], words=[0] * len(words)) in ((0,), ("",))  # before they arrive


def test_longer_values_stay():
    for value in ("x" * 8 * MOST_WORDS, 1 << 64 * MOST_WORDS):
        tree, words = {"v": value}, []
        assert (take_values(tree, words), words) == (tree, [])


@given(VALUES)
def test_tensors_are_numbered_in_the_order_in_which_they_stand(value):
    tree, tensors = flatten_value(value, is_tensor)
    assert flatten_value(rebuild_value(tree, tensors), is_tensor) == (tree, tensors)


@given(JUNK)
def test_foreign_tree_is_refused_or_gives_a_plain_value(tree):
    try:
        value = rebuild_value(tree, [])
    except WireError:
        return
    assert flatten_value(value, is_tensor)[1] == []


@pytest.mark.parametrize(
    "tree",
    [
        None, [], {}, {"t": 0, "v": 1}, {"t": 1}, {"t": -1}, {"t": True}, {"t": "0"}, {"list": {}}, {"tuple": None},
        {"dict": [["a"]]}, {"dict": [[1.5, {"v": 1}]]}, {"v": []}, {"v": {}}, {"new": 1}, {"list": [{}]},
    ],
)  # fmt: skip
def test_a_malformed_tree_is_refused(tree):
    with pytest.raises(WireError):
        rebuild_value(tree, ["only one"])


def test_dict_gives_the_same_tree_in_any_insertion_order():
    flat = [
        flatten_value(value, lambda item: type(item) is object, by_name=True)
        for value in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]
    assert flat[0] == flat[1]
    b, a = object(), object()
    assert flatten_value([{"b": b, "a": a}], lambda item: type(item) is object, by_name=True)[1] == [a, b]


def test_a_tree_that_is_too_deep_is_refused():
    tree = {"v": 1}
    for _ in range(200):
        tree = {"list": [tree]}
    with pytest.raises(WireError, match="too deep"):
        rebuild_value(tree, [])


def test_a_value_that_contains_itself_is_refused():
    value = []
    value.append(value)
    with pytest.raises(WireError, match="nested deeper"):
        flatten_value(value, is_tensor)


def test_a_type_that_cannot_cross_is_named():
    with pytest.raises(WireError, match="type object cannot be sent"):
        flatten_value((1, [object()]), is_tensor)


@given(SPECS)
def test_a_description_comes_back_as_it_was(spec):
    assert TensorSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    "value",
    [
        None, {}, [], ["float32", [1], [1]], [1, [1], [1], 0], ["float32", [1], [1], -1], ["float32", [1], [1], 0.5],
        ["float32", [-1], [1], 0], ["float32", [True], [1], 0], ["float32", [1, 2], [1], 0], ["float32", "1", [1], 0],
        ["float32", [2**48], [1], 0], ["float32", [1] * 65, [1] * 65, 0], ["float32", [2**40, 2**40], [1, 1], 0],
        ["float32", [10**400], [1], 0], ["float32", [None], [1], 0],
    ],
)  # fmt: skip
def test_a_description_that_no_tensor_has_is_refused(value):
    with pytest.raises(WireError):
        TensorSpec.from_json(value)


@given(JUNK)
def test_junk_instead_of_a_description_never_raises_anything_else(value):
    with pytest.raises(WireError):
        TensorSpec.from_json(value)


def test_a_dtype_that_cannot_cross_is_named():
    with pytest.raises(WireError, match="dtype uint16 cannot be sent"):
        storage_bytes(TensorSpec(dtype="uint16", shape=(1,), stride=(1,)))


@given(st.lists(SPECS, max_size=6), st.integers(0, 4))
def test_placed_tensors_are_aligned_and_do_not_overlap(specs, blocks):
    for place in (place_contiguous, place_strided):
        placed, end = place(specs, blocks * ALIGNMENT_BYTES)
        assert all(spec.offset % ALIGNMENT_BYTES == 0 for spec in placed)
        ends = [spec.offset + storage_bytes(spec) for spec in placed]
        assert all(before <= after.offset for before, (_, after) in zip(ends, pairwise(placed), strict=False))
        assert max([*ends, blocks * ALIGNMENT_BYTES]) <= end


@given(SHAPES)
def test_row_major_strides_reach_exactly_the_last_element(shape):
    spec = TensorSpec(dtype="uint8", shape=tuple(shape), stride=row_major_stride(shape))
    elements = 1
    for size in shape:
        elements *= size
    assert storage_bytes(spec) == elements


def test_a_strided_tensor_reaches_to_its_last_element():
    assert storage_bytes(TensorSpec(dtype="float32", shape=(3, 2), stride=(1, 10))) == (2 + 10 + 1) * 4
