"""Where a setting comes from: flag, then HARNESS_* variable, then harness.toml, then default."""

import re
from pathlib import Path

import pytest

from harness.cli.main import map_defaults, read_settings, run_command
from harness.domain import UsageError

FOLDERS = ("results", "from-file", "top", "table", "from-variable", "from-flag")
OPTIONS = {"evaluate": {"device", "results_dir"}, "results": {"results_dir", "sort"}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_RESULTS_DIR", raising=False)
    return tmp_path


def results_folder_used(capsys, *args):
    """The folder that `harness results` reads, from its complaint about the damaged file that it finds there."""
    for name in FOLDERS:
        Path(name).mkdir()
        Path(name, "harness.db").write_text(f"nothing from {name}, and no database either")
    assert run_command(["results", *args]) == 3
    return re.search(r"(\S+)/harness.db", capsys.readouterr().err)[1]


def test_the_default_is_the_working_folder(folder, capsys):
    assert results_folder_used(capsys) == "results"


def test_the_settings_file_comes_before_the_default(folder, capsys):
    (folder / "harness.toml").write_text('\ufeffresults-dir = "from-file"\n')  # with a byte order mark
    assert results_folder_used(capsys) == "from-file"


def test_a_table_of_the_settings_file_comes_before_its_top_level(folder, capsys):
    (folder / "harness.toml").write_text('results-dir = "top"\n[results]\nresults_dir = "table"\n')
    assert results_folder_used(capsys) == "table"


def test_a_variable_comes_before_the_settings_file(folder, capsys, monkeypatch):
    (folder / "harness.toml").write_text('results-dir = "from-file"\n')
    monkeypatch.setenv("HARNESS_RESULTS_DIR", "from-variable")
    assert results_folder_used(capsys) == "from-variable"


def test_a_flag_comes_before_everything(folder, capsys, monkeypatch):
    (folder / "harness.toml").write_text('results-dir = "from-file"\n')
    monkeypatch.setenv("HARNESS_RESULTS_DIR", "from-variable")
    assert results_folder_used(capsys, "--results-dir", "from-flag") == "from-flag"


def test_unknown_settings_key_is_an_error_that_names_it(folder, capsys):
    (folder / "harness.toml").write_text('reslts-dir = "x"\n')
    assert run_command(["results"]) == 2
    assert "reslts-dir" in capsys.readouterr().err


def test_a_bad_value_is_blamed_on_where_it_comes_from(folder, capsys, monkeypatch):
    (folder / "harness.toml").write_text('limit = "all"\n')
    assert run_command(["results"]) == 2
    said = capsys.readouterr().err
    assert "'--limit' in harness.toml" in said
    assert "HARNESS_LIMIT" not in said
    monkeypatch.setenv("HARNESS_LIMIT", "some")
    assert run_command(["results"]) == 2
    assert "env var: 'HARNESS_LIMIT'" in capsys.readouterr().err
    monkeypatch.delenv("HARNESS_LIMIT")
    assert run_command(["results", "--limit", "few"]) == 2
    assert "in harness.toml" not in capsys.readouterr().err


def test_an_option_with_two_variables_can_be_in_the_file(folder, capsys):
    (folder / "harness.toml").write_text('base-url = "http://localhost:8000/v1"\n')
    assert results_folder_used(capsys) == "results"


@pytest.mark.parametrize(
    ("target", "message"),
    [('"fast"', "--target fast: give a share"), ("0.9", "no run 'my-run'"), ('"2x"', "no run 'my-run'")],
)
def test_a_target_in_the_file_is_that_of_improve(target, message, folder, capsys):
    (folder / "harness.toml").write_text(f"target = {target}\n")
    assert run_command(["improve", "my-run"]) == 2
    assert message in capsys.readouterr().err


def test_invalid_toml_is_an_error_that_names_the_file(folder, capsys):
    (folder / "harness.toml").write_text("results-dir = \n")
    assert run_command(["results"]) == 2
    assert "harness.toml is not valid TOML" in capsys.readouterr().err


def test_without_a_file_there_are_no_settings(tmp_path):
    assert read_settings(tmp_path) == {}


def test_a_key_goes_to_every_command_that_takes_it():
    defaults = map_defaults({"results-dir": "r", "device": "cpu"}, OPTIONS)
    assert defaults == {"evaluate": {"results_dir": "r", "device": "cpu"}, "results": {"results_dir": "r"}}


def test_a_key_of_another_commands_table_is_refused():
    with pytest.raises(UsageError, match="sort"):
        map_defaults({"evaluate": {"sort": "speedup"}}, OPTIONS)


def test_a_table_of_no_command_is_refused():
    with pytest.raises(UsageError, match="evalute"):
        map_defaults({"evalute": {"device": "cpu"}}, OPTIONS)
