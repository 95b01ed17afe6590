from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import BuildRequest, WireError
from harness.sandbox.exchange import count_characters, parse_build_request

GOOD = {
    "name": "fused_add",
    "cpp_sources": ["int f();"],
    "cuda_sources": ["__global__ void k() {}"],
    "functions": [["f", "adds"]],
    "files": [["kernel.cu", "text"]],
    "headers": [["detail/common.h", "text"]],
    "extra_cflags": ["-O3"],
    "extra_cuda_cflags": ["--use_fast_math"],
    "extra_ldflags": ["-lcublas"],
    "with_cuda": True,
    "no_implicit_headers": False,
    "with_pytorch_error_handling": True,
    "is_python_module": False,
}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


def test_a_whole_request_is_taken_as_it_is():
    request = parse_build_request(GOOD)
    assert request.name == "fused_add"
    assert request.functions == (("f", "adds"),)
    assert request.headers == (("detail/common.h", "text"),)
    assert request.needs_cuda
    assert request.extra_ldflags == ("-lcublas",)
    assert not request.is_python_module


def test_a_request_needs_only_a_name():
    assert parse_build_request({"name": "x"}) == BuildRequest(name="x")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None), ("name", "../x"), ("name", ""), ("name", "x" * 300),
        ("cpp_sources", "text"), ("cpp_sources", [1]), ("functions", {}), ("functions", [["f"]]),
        ("functions", [[1, 2]]), ("files", [["../x.cu", "t"]]), ("files", [["/etc/x", "t"]]), ("files", [["x", 1]]),
        ("files", [["a/../../x", "t"]]), ("files", [["a/x.cu", "t"]]), ("headers", [["..", "t"]]),
        ("headers", [["a", "t"], ["a/b", "t"]]), ("headers", [["x\n", "t"]]), ("extra_cflags", None),
        ("with_cuda", 1), ("no_implicit_headers", "yes"), ("is_python_module", []),
    ],
)  # fmt: skip
def test_a_part_that_our_recorder_would_not_send_is_refused(field, value):
    with pytest.raises(WireError):
        parse_build_request({**GOOD, field: value})


def test_sources_without_end_are_refused():
    with pytest.raises(WireError, match="exceed"):
        parse_build_request({"name": "x", "cpp_sources": ["x" * (40 << 20)]})


def test_text_in_flags_and_names_counts_as_well():
    request = parse_build_request({**GOOD, "extra_cflags": ["-DX=" + "x" * 1000]})
    assert count_characters(request) == count_characters(parse_build_request({**GOOD, "extra_cflags": []})) + 1004


@given(JUNK)
def test_junk_never_raises_anything_but_a_wire_error(value):
    with suppress(WireError):
        parse_build_request(value)


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), JUNK))
def test_junk_in_any_field_never_raises_anything_but_a_wire_error(fields):
    with suppress(WireError):
        parse_build_request({**GOOD, **fields})
