import pytest

from harness.analysis.metrics import combine_clocks, describe_clocks


@pytest.mark.parametrize(
    ("clocks", "combined"),
    [
        ([], None),
        (["device", "device"], "device"),
        (["call"], "call"),
        (["device", "bound"], "bound"),
        (["call", "bound"], "mixed"),
        (["call", "device"], "mixed"),
        (["mixed", "device"], "mixed"),
    ],
)
def test_mean_with_a_lower_bound_is_a_bound_and_others_mixed(clocks, combined):
    assert combine_clocks(clocks) == combined


@pytest.mark.parametrize(
    ("counts", "note"),
    [
        ({}, ""),
        ({"device": 9}, ""),
        ({"call": 9}, ""),
        ({"device": 9, "bound": 3}, "3 of 12 timed by whole calls: lower bounds (>=)"),
        ({"bound": 2}, "2 of 2 timed by whole calls: lower bounds (>=)"),
        ({"device": 1, "call": 1}, "1 of 2 timed by whole calls of candidate and baseline"),
        ({"mixed": 1}, "1 of 1 timed by different clocks in different cases (~)"),
    ],
)
def test_a_table_of_several_clocks_or_of_bounds_says_so(counts, note):
    assert describe_clocks(counts) == note


def test_a_part_by_one_clock_is_described_beside_others():
    table = {"call": 2, "device": 1}
    assert describe_clocks({"call": 2}, table) == "2 of 2 timed by whole calls of candidate and baseline"
    assert not describe_clocks({"device": 1}, table)
