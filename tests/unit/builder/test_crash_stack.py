"""Stacks that a crashed extension prints name the function of the candidate."""

from __future__ import annotations

import pytest

from harness.builder.fast.crash_stack import NATIVE_STACK, name_native_function

OWN, OTHER = "/tmp/worker-1/x.so", "/usr/lib/libc.so.6"


def print_stack(*symbols, library=OWN):
    frames = [(OWN, ""), (OTHER, ""), *((library, symbol) for symbol in symbols)]
    return "hello\n" + NATIVE_STACK + "".join(f"{path}({symbol}+0x1f)[0x7f26]\n" for path, symbol in frames)


@pytest.mark.parametrize(
    ("symbols", "name"),
    [
        (["_Z9fill_rowsN2at6TensorEPKf", "_Z3addN2at6TensorES0_"], "fill_rows"),
        (["", "_Z3addN2at6TensorES0_"], "add"),
        (["_ZN2my6kernel3addEf"], "my::kernel::add"),
        (["_ZNK2my3AddclEf"], "my::Add"),
        (["_ZL4pokePKfl"], "poke"),
        (["plain_c"], "plain_c"),
        (["harness_open"], ""),
        (["_Z"], ""),
        ([], ""),
    ],
)
def test_the_innermost_function_with_a_name_is_named(symbols, name):
    assert name_native_function(print_stack(*symbols)) == name


def test_functions_of_other_libraries_are_not_named():
    assert name_native_function(print_stack("abort", library=OTHER)) == ""
    assert name_native_function("no stack") == ""
