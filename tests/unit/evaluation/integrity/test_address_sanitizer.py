"""Reports of AddressSanitizer become findings with the candidate's line."""

import pytest

from harness.analysis.source_locations import find_lines
from harness.builder.fast.crash_stack import ADDRESS_REPORT, shorten_output
from harness.domain import BuildRequest
from harness.evaluation.integrity.address_sanitizer import add_sanitizer, number_lines, read_report

PRINTED = """a line of the candidate
=================================================================
==12==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x61 at pc 0x7f bp 0x7ffc sp 0x7ffb
WRITE of size 4 at 0x61 thread T0
    #0 0x7f54 in my::scale(float*, long) {place}
    #1 0x7f67 in ffi_call (/lib/libffi.so+0x1)

0x61 is located 0 bytes to the right of 400-byte region [0x6,0x7)
allocated by thread T0 here:
    #0 0x7f56 in posix_memalign ../../src/libsanitizer/asan/asan_malloc_linux.cpp:145

SUMMARY: AddressSanitizer: heap-buffer-overflow
Shadow bytes around the buggy address:
  0x0c: fa fa fa fa
"""


@pytest.mark.parametrize(("place", "lines"), [("/tmp/b/candidate.py:3:10", (3,)), ("/tmp/b/main.cpp:3", ())])
def test_a_report_names_kind_access_function_and_line(place, lines):
    found = read_report(ADDRESS_REPORT.search(PRINTED.format(place=place))[0])
    file = place.rpartition("/")[2].partition(":")[0]
    assert found.message == (
        "AddressSanitizer: heap-buffer-overflow, WRITE of size 4, in my::scale(float*, long), "
        f"{file}:3, 0 bytes to the right of 400-byte region"
    )
    assert found.severity == "fatal"
    assert "posix_memalign" in found.evidence
    assert "Shadow" not in found.evidence
    assert find_lines(found, "\n" * 5) == lines


def test_a_report_without_frames_of_the_candidate_is_still_one():
    found = read_report("==1==ERROR: AddressSanitizer: SEGV on unknown address 0x0\n")
    assert found.message == "AddressSanitizer: SEGV"


def test_output_is_shortened_to_the_report_or_its_end():
    assert shorten_output(PRINTED).startswith("\n==12==ERROR")
    assert len(shorten_output("x" * 10_000)) == 1500


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ('import torch\nTEXT = r"""\nint one;\n"""\n', '#line 2 "candidate.py"\n\nint one;\n'),
        ('TEXT = "\\nint one;\\n"\n', "\nint one;\n"),  # on one line
        ("TEXT = '\\n'.join(PARTS)\n", "\nint one;\n"),
    ],
)
def test_lines_of_a_string_get_the_numbers_of_the_file(source, first):
    assert number_lines("\nint one;\n", source) == first


def test_flags_of_the_candidate_stay():
    request = BuildRequest(name="one", extra_cflags=("-O3",), extra_ldflags=("-lm",))
    changed = add_sanitizer(request, "")
    assert changed.extra_cflags[0] == "-O3"
    assert "-fsanitize=address" in changed.extra_cflags
    assert changed.extra_ldflags == ("-lm", "-fsanitize=address")
