"""Every language has rules, and each program a language."""

from typing import get_args

import pytest

from harness.domain import BuildRequest, Language
from harness.languages import LANGUAGES, detect_language


def test_every_language_of_the_domain_has_rules():
    assert tuple(LANGUAGES) == get_args(Language)


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ('load_inline(name="x", cuda_sources="...")', "cuda"),
        ("__global__ void add(float* x) {}", "cuda"),
        ('load_inline(name="x", cpp_sources="...")', "cpp"),
        ("class ModelNew: ...", "cpp"),
    ],
)
def test_a_program_that_passes_cuda_sources_or_defines_a_kernel_is_cuda(source, language):
    assert detect_language(source) == language


def test_cpp_refuses_extensions_with_cuda_sources_and_names_the_remedy():
    with_kernel = BuildRequest(name="add", cpp_sources=(), cuda_sources=("__global__ void add() {}",))
    without = BuildRequest(name="add", cpp_sources=("int add() { return 1; }",), cuda_sources=())
    assert "--language cuda" in LANGUAGES["cpp"].refuses(with_kernel)
    assert LANGUAGES["cpp"].refuses(without) is None
    assert LANGUAGES["cuda"].refuses(with_kernel) is None
