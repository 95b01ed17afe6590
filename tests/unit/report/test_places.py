"""Where findings point in a source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import Finding
from harness.report.places import find_places

SOURCE = '''import torch
SOURCE = r"""
int add(int a) {
    return a + missing;
    return a;
    return a;
}
"""
x = 1
'''


def places(message="", evidence="", *, check="build", source=SOURCE):
    return find_places(Finding(check=check, severity="fatal", message=message, evidence=evidence), source)


def test_the_screening_names_the_line_itself():
    assert places("os.system runs a program", "line 9", check="screen") == (9,)


def test_a_line_that_another_check_mentions_is_no_place():
    assert places("differs in line 3 of the output", check="wrong_value") == ()


def test_a_traceback_names_lines_of_the_candidate_only():
    trace = '  File "/usr/lib/torch/nn.py", line 4, in f\n  File "/tmp/candidate.py", line 9, in <module>'
    assert places("RuntimeError", trace) == (9,)


@pytest.mark.parametrize(
    "evidence",
    [
        "main.cpp:3:16: error: 'missing' was not declared\n    3 |     return a + missing;\n      |  ^",
        'cuda.cu(77): error: identifier "missing" is undefined\n      return a + missing;\n                 ^',
    ],
)
def test_a_compilers_message_is_placed_by_the_line_it_quotes(evidence):
    assert places("the build failed", evidence) == (4,)


def test_a_quoted_line_that_occurs_twice_is_placed_by_its_number_in_the_only_text():
    assert places("", "main.cpp:4:5: error: x\n    4 |     return a;") == (5,)


def test_without_a_unique_place_there_is_none():
    two = SOURCE + SOURCE
    assert places("", "main.cpp:4:5: error: x\n    4 |     return a;", source=two) == ()
    assert places("", "main.cpp:4:5: error: x\n    4 |     return a;", source="no (python") == ()
    assert places("", "/usr/include/x.h:4:5: error: x") == ()


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_text_gives_lines_within_the_source(message, evidence, source):
    found = places(message, evidence, check="screen", source=source)
    assert all(1 <= line <= source.count("\n") + 1 for line in found)
