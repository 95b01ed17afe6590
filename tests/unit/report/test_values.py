import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.values import make_cell, make_printable


@given(st.text(alphabet=st.characters()))
def test_nothing_that_steers_a_terminal_is_left(text):
    printable = make_printable(text)
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in printable)
    assert not set(printable) & {"\x7f", "\x9b", "\u202e", "\u2066"}
    printable.encode()


def test_unsafe_characters_are_escaped_and_others_kept():
    assert make_printable("a\x1b[2J\r\nb\tü\u202e\udcff") == "a\\x1b[2J\nb\tü\\u202e\\udcff"


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "\uff1d1"])
def test_a_formula_becomes_a_text(formula):
    assert make_cell(formula) == f"'{formula}"


def test_a_carriage_return_before_a_formula_is_written_out():
    assert make_cell("\r=1") == "\\x0d=1"


@pytest.mark.parametrize("text", ["", "plain", "a=b", "'=1", "ü\nb"])
def test_other_texts_stay_as_they_are(text):
    assert make_cell(text) == text
