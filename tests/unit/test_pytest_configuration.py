"""What pytest and hypothesis are told for all tests."""

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).resolve().parents[1]


def test_every_test_file_is_collected():
    """By default pytest passes over folders called `build`, and says nothing."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    printed = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, timeout=600, check=False).stdout
    collected = {line.partition(":")[0] for line in printed.splitlines()}
    files = {str(path.relative_to(TESTS.parent)) for path in TESTS.rglob("test_*.py")}
    assert files - collected == set(), printed[-2000:]


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
