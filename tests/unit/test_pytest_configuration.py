"""What pytest and hypothesis are told for all tests."""

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).resolve().parents[1]


# Reports each module that pytest would import, and imports none.
LISTS_MODULES = """
import pytest
class Unread(pytest.Module):
    def collect(self): return []
def pytest_pycollect_makemodule(module_path, parent):
    print("module", module_path)
    return Unread.from_parent(parent, path=module_path)
"""


def test_every_test_file_is_collected(tmp_path):
    """By default pytest passes over folders called `build`, and says nothing."""
    (tmp_path / "lists_modules.py").write_text(LISTS_MODULES)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-s", "-p", "lists_modules"]
    printed = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=TESTS.parent, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=600, check=False,
    ).stdout  # fmt: skip
    collected = {line.removeprefix("module ") for line in printed.splitlines()}
    assert {str(path) for path in TESTS.rglob("test_*.py")} - collected == set(), printed[-2000:]


def test_no_example_of_hypothesis_has_a_deadline():
    assert settings().deadline is None


SKIPPING = """
import pytest
@pytest.mark.skip(reason="needs a spaceship")
@pytest.mark.parametrize("number", range(2))
def test_flies(number): pass
def test_lands(): pytest.skip("needs a spaceship")
def test_dives(): pytest.skip("needs a submarine")
def test_walks(): pass
"""


def test_a_run_ends_with_the_skipped_tests_counted_by_reason(tmp_path):
    (tmp_path / "test_travel.py").write_text(SKIPPING)
    command = [sys.executable, "-m", "pytest", "-q", "-c", TESTS.parent / "pyproject.toml", "-p", "conftest", tmp_path]
    command += ["-p", "no:cacheprovider"]
    printed = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=True
    ).stdout
    summary = printed.partition("4 tests skipped")[2]
    lines = [" ".join(line.split()) for line in summary.splitlines()[1:3]]
    assert lines == ["3 needs a spaceship", "1 needs a submarine"], printed
    assert printed.count("needs a spaceship") == 1
