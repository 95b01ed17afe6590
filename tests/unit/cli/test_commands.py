import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import GROUPS, SUMMARIES, CommandGroup, run_command


def test_help_lists_every_command_whole_and_imports_none_of_them():
    code = (
        "import sys\nfrom harness.cli.main import run_command\nrun_command(['--help'])\n"
        "print({'torch', 'pandas', 'rich', 'harness.domain', 'harness.cli.run'} & set(sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    lines = printed.splitlines()
    assert lines[-1] == "set()"
    assert max(map(len, lines)) <= 80
    for name, summary in SUMMARIES.items():
        assert [name, *summary.split()] in [line.split() for line in lines]


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_command_that_is_listed_can_be_loaded_under_its_name(name):
    command = CommandGroup().get_command(None, name)
    assert command.name == name
    assert bool(getattr(command, "commands", None)) == (name in GROUPS)


def test_a_name_that_is_no_command_suggests_the_nearest(capsys):
    assert run_command(["evalate"]) == 2
    assert "Did you mean 'evaluate'?" in capsys.readouterr().err


def test_an_error_that_is_not_the_harness_s_own_is_raised(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError):
        run_command(["results"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"HARNESS_DEVICE": "gpx"}, "harness: unknown device 'gpx'"),
        ({"HARNESS_DEVICE": "cuda:99"}, "harness: cuda:99 was requested"),
        ({"HARNESS_SUITE": "no_such"}, "harness: no suite 'no_such'"),
    ],
)
def test_a_wrong_setting_is_wrong_usage_and_no_failure_of_the_harness(tmp_path, monkeypatch, capsys, setting, message):
    monkeypatch.chdir(tmp_path)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    Path("c.py").write_text("class ModelNew:\n    pass\n")
    assert run_command(["evaluate", "--candidate", "c.py", "--problem", "softmax", "--language", "cuda"]) == 2
    assert message in capsys.readouterr().err


def test_a_problem_file_that_is_no_problem_is_wrong_usage(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("c.py").write_text("class ModelNew:\n    pass\n")
    Path("p.py").write_text("def get_inputs(:\n")
    assert run_command(["evaluate", "--candidate", "c.py", "--problem", "p.py"]) == 2
    assert "harness: p.py, line 1: expected Python" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "printed"), [("generate", "ModelNew"), ("run", "cost: unknown")])
def test_a_dry_run_needs_neither_model_nor_folder(tmp_path, monkeypatch, capsys, command, printed):
    monkeypatch.chdir(tmp_path)
    assert run_command([command, "--problem", "softmax", "--language", "cpp", "--dry-run"]) == 0
    output = capsys.readouterr()
    assert printed in output.out
    assert (output.err, list(tmp_path.iterdir())) == ("", [])
