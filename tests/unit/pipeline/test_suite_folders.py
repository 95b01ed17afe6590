"""Which suites a command finds: the shipped ones, and a user's own beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.main import run_command

PROBLEM = "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs one command line in this process, in a folder without a checkout: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        code = run_command([str(arg) for arg in args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def write_problem(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(PROBLEM)


def test_the_shipped_suite_is_there_after_an_import_into_an_empty_folder(command, tmp_path):
    write_problem(tmp_path / "bench" / "level1", "1_Relu")
    assert command("import", "--format", "kernelbench", "bench")[0] == 0
    code, stdout, _ = command("generate", "--suite", "core", "--problem", "softmax", "--dry-run")
    assert (code, "softmax" in stdout) == (0, True)
    code, stdout, _ = command("generate", "--suite", "kernelbench_level1", "--dry-run")
    assert (code, "class Model: pass" in stdout) == (0, True)


def test_the_shipped_suite_is_there_beside_a_folder_named_with_problems_dir(command, tmp_path):
    write_problem(tmp_path / "mine" / "ops", "add")
    assert command("generate", "--problems-dir", "mine", "--problem", "softmax", "--dry-run")[0] == 0
    assert command("generate", "--problems-dir", "mine", "--suite", "ops", "--dry-run")[0] == 0


def test_a_users_suite_is_taken_instead_of_a_shipped_one_of_its_name_and_that_is_said(command, tmp_path):
    write_problem(tmp_path / "reference_models" / "core", "mine")
    code, stdout, stderr = command("problems", "list", "--suite", "core", "--json")
    assert code == 0
    assert [problem["name"] for problem in json.loads(stdout)["problems"]] == ["mine"]
    assert "reference_models/core is used instead of the shipped suite of that name" in stderr


def test_an_unknown_suite_is_looked_for_among_all_of_them(command, tmp_path):
    write_problem(tmp_path / "reference_models" / "cores", "mine")
    code, _, stderr = command("generate", "--suite", "coer", "--dry-run")
    assert code == 2
    assert "no suite 'coer' in reference_models nor in " in stderr
    assert "Did you mean core, cores?" in stderr
