"""What a release needs beside the code agrees with it."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import harness

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_file_follows_its_schema():
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("needs the package check-jsonschema")
    program = Path(sys.executable).with_name("check-jsonschema")
    command = [program, "--builtin-schema", "vendor.citation-file-format", ROOT / "CITATION.cff"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "pattern"), [("CITATION.cff", r"^version: (.+)$"), ("CHANGELOG.md", r"^## \[(.+?)\]")]
)
def test_a_file_names_the_version_of_the_package(name, pattern):
    assert re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)[1] == harness.__version__


def test_the_classifiers_name_the_python_versions_that_are_accepted():
    lowest, beyond = map(int, re.findall(r"3\.(\d+)", PROJECT["requires-python"]))
    listed = [int(minor) for minor in re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["classifiers"]))]
    assert listed == list(range(lowest, beyond))


def test_every_licence_file_of_the_metadata_exists():
    assert [pattern for pattern in PROJECT["license-files"] if not list(ROOT.glob(pattern))] == []


def test_files_that_the_sdist_takes_exist():
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    named = [name for action, *names in lines if action in ("include", "graft") for name in names]
    assert [name for name in named if not (ROOT / name).exists()] == []
