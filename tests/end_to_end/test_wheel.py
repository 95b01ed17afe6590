"""The wheel of the sdist, installed apart from this checkout: suites, prompts, recordings and corpus are in it."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
DATA = ("reference_models", "prompts", "recordings", "redteam_corpus", "examples")
SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "harness", *DATA)
SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


def run(*command, code=0, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A virtual environment with the wheel; torch and the other dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:  # a build writes into its source folder
        subprocess.run(["cp", "-r", ROOT / name, source / name], check=True)
    run(sys.executable, "-c", SDIST, str(folder), cwd=source)
    (sdist,) = folder.glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(sdist))
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
    python = folder / "venv" / "bin" / "python"
    run(*pip, "--python", str(python), "install", "-q", "--no-deps", str(wheel))
    packages = Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture
def harness(installed, tmp_path, build_cache):
    """Runs the installed command in an empty folder."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HARNESS_CACHE_DIR": str(build_cache), "CUDA_HOME": "none"}  # nvcc takes a minute of CPU time
    (tmp_path / "empty").mkdir()

    def call(*arguments, code=0):
        command = (str(installed.with_name("harness")), *arguments)
        return run(*command, cwd=tmp_path / "empty", env=environment, timeout=600, code=code)

    return call


def test_it_is_the_installed_package_that_runs(installed, tmp_path):
    where = run(str(installed), "-c", "import harness; print(harness.__file__)", cwd=tmp_path)
    assert str(installed.parents[1]) in where


def test_its_metadata_name_version_licences_and_commands(installed, tmp_path):
    source = (
        "from importlib.metadata import distribution; import harness; found = distribution('kernel-harness'); "
        "assert found.version == harness.__version__; assert [one.name for one in found.entry_points] == ['harness']; "
        "print(found.metadata['License-Expression'], *found.metadata.get_all('License-File'))"
    )
    printed = run(str(installed), "-c", source, cwd=tmp_path)
    assert [part.rpartition("/")[2] for part in printed.split()] == [
        "MIT", "AND", "ISC", "LICENSE", "d3.LICENSE", "plot.LICENSE"
    ]  # fmt: skip


def test_the_first_evaluation_of_the_readme_ends_as_it_says(harness, tmp_path):
    text = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"^```\n\$ cat cached.py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    program, evaluate, table, show, shown = re.split(r"^\$ harness (.*)\n", example, flags=re.MULTILINE)
    (tmp_path / "empty" / "cached.py").write_text(program)
    assert harness(*evaluate.split(), code=1).split()[:15] == table.split()[:15]  # names of columns, line, row
    first, second = re.findall(r"^ *(\d+) +(\w+) +(yes|NO)\b", shown, re.MULTILINE)
    assert [first, second] == re.findall(r"^ *(\d+) +(\w+) +(yes|NO)\b", harness(*show.split()), re.MULTILINE)[:2]


def test_the_sources_of_the_driver_library_are_in_it(installed, tmp_path):
    source = "from harness.sandbox.gpu.driver_library import SOURCES; print(*(path.name for path in SOURCES.iterdir()))"
    assert {"driver.cpp", "memory.h"} <= set(run(str(installed), "-c", source, cwd=tmp_path).split())


def test_a_recorded_run_is_evaluated_and_reported_in_an_empty_folder(harness, needs_compiler, tmp_path):
    options = ("--language", "cpp", "--problem", "rms_norm", "--workload", "small", "--no-time")
    assert "rms_norm" in harness("run", "--provider", "recorded", *options)
    assert "correct" in harness("results")
    harness("report")
    assert (tmp_path / "empty" / "report.html").stat().st_size > 100_000


def test_a_cuda_answer_is_evaluated_on_the_emulated_device(harness, needs_compiler):
    options = ("--language", "cuda", "--device", "emulated", "--problem", "rms_norm", "--workload", "small")
    assert "rms_norm" in harness("run", "--provider", "recorded", *options)


def test_a_problem_file_is_written_and_passes_its_check(harness):
    harness("problems", "new", "my_operator")
    assert "1 of 1 problems admitted" in harness("problems", "check", "my_operator.py")


def test_the_red_team_finds_its_corpus(harness, needs_compiler):
    assert "caught" in harness("red-team", "--only", "attacks/constant")
