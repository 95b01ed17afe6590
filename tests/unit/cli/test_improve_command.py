"""`harness improve` with arguments that make no sense."""

import pytest

from harness.cli.main import run_command


@pytest.fixture
def fail(tmp_path, monkeypatch, capsys):
    """The message of a command that ends with a usage error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        assert run_command(["improve", *arguments]) == 2
        return capsys.readouterr().err

    return run


def test_a_file_needs_a_problem(fail):
    assert "improving a file needs --problem" in fail("mine.py", "--model", "m")


def test_a_run_has_its_own_problems(fail):
    assert "--problem is for a FILE" in fail("my-run", "--problem", "softmax")


def test_a_run_has_its_own_language(fail):
    assert "--language is for a FILE" in fail("my-run", "--language", "torch")


def test_an_unknown_run_is_named(fail):
    assert "no run 'my-run' in generated" in fail("my-run")


def test_an_unreadable_file_is_named(fail):
    assert "cannot read the candidate mine.py" in fail("mine.py", "--problem", "softmax", "--model", "m")


def test_an_imported_run_has_no_model_to_ask(fail, write_run, tmp_path):
    manifest = write_run("old", [None]) / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"recorded"', '"kernelbench"'))
    assert "was imported, so there is no model to ask" in fail("old")
