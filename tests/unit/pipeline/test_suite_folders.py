"""Which suites a command finds: the shipped ones, and a user's own beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.main import run_command
from harness.domain import UsageError
from harness.pipeline.data_folders import find_named_problem

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


def test_user_suite_overrides_a_shipped_suite_with_a_note(command, tmp_path):
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
    assert "did you mean core or cores?" in stderr


def test_problem_is_found_by_name_suite_or_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path / "own" / "mine", "relu")
    found = [
        find_named_problem("relu", "mine", tmp_path / "own"),
        find_named_problem("mine/relu", "core", tmp_path / "own"),
        find_named_problem("own/mine/relu.py", "core", None),
        find_named_problem("llm/swiglu", "core", tmp_path / "own"),
    ]
    assert [f"{one.suite}/{one.name}" for one in found] == ["mine/relu"] * 3 + ["llm/swiglu"]
    with pytest.raises(UsageError, match="no suite 'absent'"):
        find_named_problem("absent/relu", "core", None)
