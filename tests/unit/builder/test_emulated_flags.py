"""Builds for the emulated device share a kit, whatever a candidate adds that its headers do not depend on."""

import pytest

from harness.builder.emulated import read_prebuilt_flags

PLAIN = "-DTORCH_EXTENSION_NAME=a -DN -isystem /t/include -fPIC -std=c++20"
BUILD_FOLDER = "work"  # in which a build's own headers lie


@pytest.mark.parametrize("own", [f"-I/cache/ab/{BUILD_FOLDER}/include", f"-isystem /cache/ab/{BUILD_FOLDER}/include"])
def test_headers_of_a_candidates_own_need_no_kit_of_their_own(own: str) -> None:
    with_headers = f"-DTORCH_EXTENSION_NAME=b -DN {own} -isystem /t/include -fPIC -std=c++20 -O3"
    assert read_prebuilt_flags(with_headers, "-O3") == read_prebuilt_flags(PLAIN, "")
