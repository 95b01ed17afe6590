"""What pytest and hypothesis are told for all tests."""

import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).resolve().parents[1]


def test_every_test_file_is_collected(pytestconfig):
    """By default pytest passes over folders called `build`, and says nothing."""
    names = {"build", *(part for path in TESTS.rglob("test_*.py") for part in path.relative_to(TESTS).parts)}
    passed_over = pytestconfig.getini("norecursedirs")
    assert [name for name in names if any(fnmatch(name, pattern) for pattern in passed_over)] == []
    assert pytestconfig.getini("testpaths") == [TESTS.name]
    assert "test_*.py" in pytestconfig.getini("python_files")


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
    command += ["-p", "no:cacheprovider", "-p", "pytest_timeout"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # half the time
    printed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    summary = printed.partition("4 tests skipped")[2]
    lines = [" ".join(line.split()) for line in summary.splitlines()[1:3]]
    assert lines == ["3 needs a spaceship", "1 needs a submarine"], printed
    assert printed.count("needs a spaceship") == 1
