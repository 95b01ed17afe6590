"""The forwarding driver library, built against a stand-in for the real driver, and programs that use it."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import textwrap
from hashlib import sha256
from pathlib import Path

import pytest

from harness.sandbox.gpu.driver_library import DRIVER, find_header_folder

HERE = Path(__file__).resolve().parent
STAND_IN = HERE / "stand_in_driver.cpp"
BUILD = "import sys; from harness.sandbox.gpu.driver_library import *; print(find_driver_library(Path(sys.argv[1])))"


@pytest.fixture(scope="session")
def stand_in(build_cache):
    """The stand-in's folder, for LD_LIBRARY_PATH."""
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("needs g++")
    folder = build_cache / f"stand-in-{sha256(STAND_IN.read_bytes()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / DRIVER).exists():
            options = ("-std=c++17", "-shared", "-fPIC", f"-I{find_header_folder()}", f"-Wl,-soname,{DRIVER}", "-ldl")
            subprocess.run([compiler, str(STAND_IN), *options, "-o", str(folder / "made")], check=True)
            (folder / "made").rename(folder / DRIVER)
            (folder / "c++").write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')  # half the time
            (folder / "c++").chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def library(stand_in):
    """The forwarding library's file."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(stand_in), "CXX": str(stand_in / "c++")}
    with (stand_in / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = (sys.executable, "-c", BUILD, str(stand_in / "built"))
        return Path(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip())


@pytest.fixture(scope="session")
def program(library):
    """A process that has loaded the library: `driver_program.py`."""
    command = (sys.executable, str(HERE / "driver_program.py"), str(library))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def run(program):
    """Runs statements in a fork of a process that has loaded the library: what they assign to `answer`."""

    def call(source, *arguments):
        program.stdin.write(json.dumps([textwrap.dedent(source), [*map(str, arguments)]]) + "\n")
        program.stdin.flush()
        answer, failure = json.loads(program.stdout.readline())
        assert not failure, failure
        return answer

    return call
