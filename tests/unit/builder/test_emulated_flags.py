"""Builds for the emulated device share a kit, whatever a candidate adds that its headers do not depend on."""

import shutil
import subprocess

import pytest

from harness.builder.emulated import Commands, read_prebuilt_flags
from harness.emulator import RUNTIME

PLAIN = "-DTORCH_EXTENSION_NAME=a -DN -isystem /t/include -fPIC -std=c++20"
BUILD_FOLDER = "work"  # in which a build's own headers lie


@pytest.mark.parametrize("own", [f"-I/cache/ab/{BUILD_FOLDER}/include", f"-isystem /cache/ab/{BUILD_FOLDER}/include"])
def test_headers_of_a_candidates_own_need_no_kit_of_their_own(own: str) -> None:
    with_headers = f"-DTORCH_EXTENSION_NAME=b -DN {own} -isystem /t/include -fPIC -std=c++20 -O3"
    assert read_prebuilt_flags(with_headers, "-O3") == read_prebuilt_flags(PLAIN, "")


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.slow
def test_a_checked_build_uses_the_header_that_was_precompiled_for_plain_ones(tmp_path):
    """Without torch's part, which takes half a minute."""
    header = tmp_path / "device.h"
    text = (RUNTIME / "emulator" / "device.h").read_text()
    own = [line for line in text.splitlines() if "torch" not in line and "tensors.h" not in line]
    header.write_text("\n".join(own).replace('#include "', '#include "emulator/'))
    (tmp_path / "empty.cpp").touch()
    checked = Commands(compiler="g++", flags=f"-std=c++20 -fPIC -I{RUNTIME}", is_checked=True)
    for command in (
        f"{checked.device_header} -x c++-header device.h -o device.h.gch",
        f"{checked.device} -Winvalid-pch -Werror -include {header} -c empty.cpp",
    ):
        done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
