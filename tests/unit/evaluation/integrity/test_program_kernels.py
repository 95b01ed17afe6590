"""When a program's text gives recorded code. What is compiled again is made up; `test_triton_rebuild` compiles."""

import json

import pytest

from harness.evaluation.integrity.program_kernels import ProgramKernels
from harness.sandbox.gpu.recorded_code import RecordedFunction

KERNEL = "def scale(x, BLOCK: tl.constexpr):\n    tl.store(x, half(BLOCK))\n"
HELPER = "def half(x):\n    return x / 2\n"
PTX = ".version 8.0\n.target sm_90\n.visible .entry ptx_kernel() { " + "ret; " * 20 + "}\n"
SOURCE = f"""
import triton

def make():
    @triton.autotune([], key=[])
    @triton.jit
    {KERNEL.replace("    ", "        ")}
    return scale

TEXT = '''
    @triton.jit
    {HELPER.replace("    ", "        ")}
'''
ASSEMBLY = '''{PTX}'''
"""
CODE = b"\x7fELF of the kernel"


def describe(*texts):
    return json.dumps({"functions": [{"text": text} for text in texts]})


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (describe(KERNEL), {CODE: "same"}),
        (describe(f"    {KERNEL.replace('    ', '        ')}", HELPER), {CODE: "same"}),
        (describe(KERNEL.replace("x,", "x,  # a remark\n")), {CODE: "same"}),
        (describe(KERNEL.replace("store", "load")), {CODE: "other"}),
        (describe(KERNEL, HELPER.replace("2", "3")), {CODE: "other"}),
        (describe(KERNEL + HELPER), {CODE: "other"}),
        (describe(KERNEL + "import os"), {CODE: "other"}),
        (describe(), {CODE: "other"}),
        ("{", {CODE: "other"}),
        ("[" * 100_000, {CODE: "other"}),
        ('{"functions": [{"text": 1}]}', {CODE: "other"}),
        ("", {}),
    ],
    ids=["itself", "with a helper of a string", "with a remark", "altered", "helper altered", "two in one text",
         "more than a function", "no text", "no JSON", "deep", "no string", "no description"],
)  # fmt: skip
def test_only_texts_of_the_program_are_compiled_again(said, found):
    program = ProgramKernels(SOURCE, lambda texts: [CODE for _ in texts])
    assert program.compare([RecordedFunction("scale", "", CODE, said)]) == found


def test_kernels_are_compiled_again_together_and_compared_by_all_bytes():
    texts = []
    program = ProgramKernels(SOURCE, lambda asked: texts.append(asked) or [CODE, CODE, b""])
    images = [CODE, CODE + b"\0", b"\x7fELF of no other"]
    found = program.compare([RecordedFunction("scale", "", image, describe(KERNEL)) for image in images])
    assert list(found.items()) == list(zip(images, ["same", "said", "said"], strict=True))
    assert texts == [[describe(KERNEL)] * 3]


@pytest.mark.parametrize(("built", "found"), [((), {}), (("add",), {CODE: "other"})])
def test_a_compiler_that_writes_a_built_name_is_told_from_it(built, found):
    program = ProgramKernels(SOURCE, lambda texts: [], built)
    assert program.compare([RecordedFunction("add", "", CODE, describe("def add(x): pass"))]) == found


@pytest.mark.parametrize(
    ("image", "found"),
    [(PTX.encode() + b"\0", True), (PTX.replace("90", "80").encode(), False), (b".version 8.0", False), (b"", False)],
)
def test_assembly_in_a_string_of_the_program_is_its_own(image, found):
    program = ProgramKernels(SOURCE, lambda texts: [])
    assert program.compare([RecordedFunction("ptx_kernel", "", image)]) == ({image: "same"} if found else {})


def test_a_program_that_cannot_be_parsed_has_no_texts():
    program = ProgramKernels(f"{SOURCE}(", lambda texts: [CODE])
    assert program.compare([RecordedFunction("scale", "", CODE, describe(KERNEL))]) == {}
