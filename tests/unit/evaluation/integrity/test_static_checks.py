"""Warnings about a candidate's source."""

import pytest

from harness.evaluation.integrity.static_checks import warn_of_narrow_formats


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("y = x.half() @ w.to(torch.bfloat16)", "half, bfloat16"),
        ("acc = tl.dot(a.to(tl.float8e4nv), b)", "float8e4nv"),
        ('CUDA = """__half h; // __nv_bfloat16 in a comment\n/* at::Half */ wmma<__half2>"""', "__half, __half2"),
        ('tl.dot(a, b, input_precision="tf32x3")', "tf32x3"),
    ],
)
def test_a_program_that_names_narrow_formats_gets_one_warning(source, names):
    (finding,) = warn_of_narrow_formats(source, "x.float()", 32)
    assert (finding.check, finding.severity) == ("narrow_format", "warning")
    assert f"names {names}:" in finding.message


@pytest.mark.parametrize("source", ["half = n // 2\nx[:half]", "# x.half()\nx.float()", 'C = "int half = n / 2;"'])
def test_other_programs_get_none(source):
    assert warn_of_narrow_formats(source, "x.float()", 32) == ()


def test_formats_that_the_reference_names_give_no_warning():
    assert warn_of_narrow_formats("x.half()", "return x.half().float()", 32) == ()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("w = w.to(torch.int8)", "int8"),
        ("w = w.to(torch.float8_e4m3fn)", "float8_e4m3fn"),
        ('CUDA = "__nv_bfloat16 a; int8_t b;"', "int8_t"),
        ('CUDA = "__half a;"', ""),
        ("x.half().float().int()", ""),
    ],
)
def test_in_problems_of_16_bits_only_formats_of_8_bits_are_narrow(source, names):
    found = [one.message for one in warn_of_narrow_formats(source, "x.bfloat16()", 16)]
    assert found == (
        [f"the problem is in 16 bits, and the program names {names}: it may compute with fewer digits"] * bool(names)
    )
