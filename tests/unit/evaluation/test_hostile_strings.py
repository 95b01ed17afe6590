"""Texts of a candidate's own making cost the evaluator no more than their length, and never its stack."""

import time

import pytest

from harness.builder.error_excerpt import shorten_log
from harness.domain import BuildRequest
from harness.evaluation.integrity.attribution import list_custom_kernels
from harness.evaluation.integrity.static_checks import find_syntax_error

PATIENCE_S = 5.0  # of processor time: what takes quadratic or exponential time takes minutes and more


@pytest.mark.parametrize(
    "text",
    [
        'const char* s = "' + "/* " * 100_000 + '";',
        "__global__" + " " * 100_000 + ";",
        "__global__ " * 50_000,
        "__global__" + " __a__" * 50_000 + ";",
        "__global__ __a__(" * 50_000,
        '"' + '\\"' * 100_000,
        "m.def(" + " " * 100_000,
    ],
    ids=["comments", "spaces", "repeated", "attributes", "parentheses", "quotes", "bindings"],
)
def test_looking_for_kernels_takes_no_longer_than_the_source_is_long(text):
    began_s = time.process_time()
    list_custom_kernels([BuildRequest(name="x", cpp_sources=(text,))])
    assert time.process_time() - began_s < PATIENCE_S


@pytest.mark.parametrize("words", ["/build-" * 50_000, "a" * 500_000, "/build-a/" * 50_000])
def test_shortening_a_log_takes_no_longer_than_the_log_is_long(words):
    began_s = time.process_time()
    assert shorten_log(f"main.cpp:1:2: error: {words}").startswith("main.cpp")
    assert time.process_time() - began_s < PATIENCE_S


def test_kernels_are_found_behind_what_looks_like_a_comment_in_a_string():
    source = 'const char* s = "/*"; __global__ void __launch_bounds__(256, (1 + 2)) scale(float* x) {} // __global__ f('
    assert list_custom_kernels([BuildRequest(name="x", cpp_sources=(), cuda_sources=(source,))]) == ("scale",)


def test_a_chain_of_names_deeper_than_the_stack_is_read():
    source = "a" + ".b" * 1500 + "()\ntorch.add" + ".b" * 1500 + " = 1\n"
    assert find_syntax_error(source) is None
