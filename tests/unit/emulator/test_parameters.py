"""Which parameters of a kernel are pointers."""

import pytest

from harness.emulator.launches import list_pointers
from harness.syntax.cpp import tokenize


@pytest.mark.parametrize(
    ("declared", "names"),
    [
        ("const float* __restrict__ x, float *y, int n", ["x", "y"]),
        ("const float* const __restrict__ x, T** rows, volatile int* flag = nullptr", ["x", "rows", "flag"]),
        ("float x[], const int sizes[3], int n = 4 * 2", ["x", "sizes"]),
        ("torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> in, std::array<float*, 4> all", ["in"]),
        ("const float* /* unused */, float*, Args*... more, void (*call)(int*), float* NAME##_x", []),
        ("", []),
    ],
)
def test_pointers_arrays_and_accessors_are_found_by_name(declared: str, names: list[str]) -> None:
    assert list_pointers(tokenize(declared)) == names
