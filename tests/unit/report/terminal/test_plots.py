"""Braille plots of samples."""

from hypothesis import given
from hypothesis import strategies as st

from harness.report.terminal.timing_details import plot_samples


def number(value):
    return f"{value:.1f}"


def count_dots(lines):
    return sum((ord(sign) - 0x2800).bit_count() for line in lines for sign in line.split("┤")[1])


def test_samples_lie_by_their_value_from_left_to_right():
    assert plot_samples([0.0, 1.0, 2.0, 3.0], number, height=1) == ["1.5 ┤⡠⠊"]


def test_every_line_has_its_scale():
    lines = plot_samples([0.0, 6.0], number, height=6)
    assert [line.split("┤")[0].strip() for line in lines] == ["5.5", "", "3.5", "", "1.5", "0.5"]


def test_equal_samples_are_a_line_and_none_give_none():
    assert count_dots(plot_samples([2.0] * 8, number)) == 8
    assert plot_samples([], number) == []
    assert plot_samples([float("nan"), float("inf")], number) == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400))
def test_a_plot_fits_its_width_and_shows_every_sample_that_has_room(values):
    lines = plot_samples(values, number, width=30, height=4)
    assert len(lines) == 4
    assert max(len(line.split("┤")[1]) for line in lines) <= 30
    assert 1 <= count_dots(lines) <= len(values)
    if len(values) <= 60:
        assert count_dots(lines) == len(values)
