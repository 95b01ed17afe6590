"""`harness generate` and `run` with problems given as files: the file travels with the run, and a run that could not be
evaluated is refused before the endpoint is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import ChatServer, Reply, reply_with, serve

from harness.store.runs import read_manifest

ANSWER = """```python
import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a + b
```
"""


@pytest.fixture
def reference(tmp_path: Path, tiny_suite: Path) -> Path:
    """A reference file that is in no suite."""
    path = tmp_path / "my ops" / "plus.py"
    path.parent.mkdir()
    path.write_text((tiny_suite / "add.py").read_text())
    return path


@pytest.fixture
def ask(call_harness):
    """Runs `generate` or `run` for the language cpp, with a local endpoint."""

    def run(command: str, server: ChatServer, *arguments: object):
        fixed = ["--model", "m", "--base-url", server.base_url, "--language", "cpp", "--max-wait", "1"]
        extra = ["--no-time"] if command == "run" else []
        return call_harness([command, *fixed, *extra, *arguments])

    return run


@pytest.mark.slow
def test_run_of_a_file_uses_the_text_at_generation(ask, call_harness, reference, tmp_path):
    text = reference.read_text()
    with serve(reply_with(ANSWER)).running() as server:
        done = ask("generate", server, "--problem", reference, "--run", "mine")
    assert done.returncode == 0, done.stderr
    run_dir = tmp_path / "generated" / "mine"
    [file] = read_manifest(run_dir).files
    assert (file.name, file.path) == ("plus", str(reference))
    assert (run_dir / "plus" / "plus.py").read_text() == text

    reference.unlink()
    done = call_harness(["evaluate", "mine", "--no-time", "--json"])
    assert done.returncode == 0, done.stderr
    [record] = [json.loads(line) for line in done.stdout.splitlines()]
    assert (record["problem"], record["suite"], record["outcome"]) == ("plus", "my ops", "correct")
    assert record["problem_digest"] == file.digest


@pytest.mark.slow
def test_run_of_a_file_can_be_shown_exported_and_reevaluated(ask, call_harness, reference, tmp_path):
    with serve(reply_with(ANSWER)).running() as server:
        done = ask("run", server, "--problem", reference, "--run", "mine", "--no-time")
    assert done.returncode == 0, done.stderr
    reference.unlink()
    assert "correct" in call_harness(["show", "mine/plus/0"]).stdout
    again = call_harness(["regress", "mine", "--no-time", "--json", "-"])
    assert again.returncode == 0, again.stderr + again.stdout
    assert call_harness(["export", "--format", "kernelbench", "--run", "mine", "out"]).returncode == 0
    assert (tmp_path / "out" / "level_1_problem_1_sample_0_kernel.py").is_file()
    assert call_harness(["report", "mine"]).returncode == 0


@pytest.mark.slow
def test_a_suite_given_by_its_path_is_evaluated_and_improved(ask, call_harness, reference, tmp_path):
    with serve(reply_with(ANSWER.replace("a + b", "a - b"))).running() as server:
        done = ask("run", server, "--suite", reference.parent, "--run", "mine")
    assert done.returncode == 0, done.stderr
    assert "wrong_value" in done.stdout
    reference.unlink()
    with serve(reply_with(ANSWER)).running() as server:
        manifest = tmp_path / "generated" / "mine" / "manifest.json"
        manifest.write_text(manifest.read_text().replace(json.loads(manifest.read_text())["base_url"], server.base_url))
        done = call_harness(["improve", "mine", "--turns", "2", "--no-time", "--max-wait", "1"])
    assert done.returncode == 0, done.stderr
    assert "wrong_value > correct" in done.stdout


def test_a_stored_reference_that_was_changed_is_an_error(ask, call_harness, reference, tmp_path):
    with serve(reply_with(ANSWER)).running() as server:
        ask("generate", server, "--problem", reference, "--run", "mine")
    stored = tmp_path / "generated" / "mine" / "plus" / "plus.py"
    stored.write_text(stored.read_text() + "# easier\n")
    done = call_harness(["evaluate", "mine", "--no-time"])
    assert done.returncode == 3
    assert "was changed after the run was made" in done.stderr


@pytest.mark.slow
def test_a_file_that_changed_is_not_added_to_its_run(ask, reference):
    with serve(reply_with(ANSWER)).running() as server:
        ask("generate", server, "--problem", reference, "--run", "mine")
        reference.write_text(reference.read_text() + "# changed\n")
        done = ask("generate", server, "--problem", reference, "--run", "mine", "--samples", "2")
        assert len(server.requests) == 1
    assert done.returncode == 2
    assert "run 'mine' has another problem 'plus'" in done.stderr
    assert str(reference) in done.stderr


@pytest.mark.parametrize("command", ["generate", "run"])
def test_a_file_that_does_not_load_is_refused_before_a_request(command, ask, reference, tmp_path):
    reference.write_text(f"{reference.read_text()}\nraise RuntimeError('half written')\n")
    with serve(reply_with(ANSWER)).running() as server:
        done = ask(command, server, "--problem", reference)
        assert server.requests == []
    assert done.returncode == 2
    assert "half written" in done.stderr
    assert not (tmp_path / "generated").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--workload", "small"), "plus has no small workload"), (("--device", "cuda:99"), "cuda:99 was requested")],
)
def test_a_run_that_cannot_be_evaluated_is_refused_before_a_request(arguments, message, ask, reference, tmp_path):
    language = ("--language", "cuda") if "--device" in arguments else ()
    with serve(reply_with(ANSWER)).running() as server:
        done = ask("run", server, "--problem", reference, *arguments, *language)
        assert server.requests == []
    assert done.returncode in (2, 3)
    assert message in done.stderr
    assert not (tmp_path / "generated").exists()


@pytest.mark.slow
def test_run_prints_the_leaderboard_of_its_own_suite_alone(ask, reference, tmp_path):
    other = tmp_path / "other" / "plus.py"
    other.parent.mkdir()
    other.write_text(reference.read_text())
    with serve(reply_with(ANSWER)).running() as server:
        ask("run", server, "--problem", other)
        done = ask("run", server, "--problem", reference)
    assert "my ops, full workload" in done.stdout
    assert "other, full workload" not in done.stdout


def test_two_problems_of_one_name_are_refused_with_both_paths(ask, reference, tiny_suite, tmp_path):
    other = reference.with_name("add.py")
    other.write_text(reference.read_text() + "# another\n")
    arguments = ("--problems-dir", tiny_suite.parent, "--suite", "tiny", "--problem", "add", "--problem", other)
    with serve(reply_with(ANSWER)).running() as server:
        done = ask("generate", server, *arguments)
        assert server.requests == []
    assert done.returncode == 2
    assert f"two problems are named 'add': {tiny_suite / 'add.py'} and {other}" in done.stderr


def test_problems_of_two_suites_are_refused(ask, reference, tiny_suite):
    arguments = ("--problems-dir", tiny_suite.parent, "--suite", "tiny", "--problem", "add", "--problem", reference)
    with serve(reply_with(ANSWER)).running() as server:
        done = ask("generate", server, *arguments)
    assert done.returncode == 2
    assert "problems belong to several suites (tiny, my ops)" in done.stderr


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("command", ["generate", "run"])
def test_an_unknown_model_leaves_no_run(command, status, ask, reference, tmp_path):
    body = b'{"error": {"message": "no such model"}}'
    unknown = Reply(status=status, body=body, headers={"Content-Type": "application/json"})
    with serve(unknown).running() as server:
        done = ask(command, server, "--problem", reference, "--run", "mine")
    assert done.returncode in (1, 3)
    assert "no such model" in done.stderr
    assert [*(tmp_path / "generated").iterdir()] == []


def test_another_endpoint_does_not_continue_a_run(ask, reference, tmp_path):
    with serve(reply_with(ANSWER)).running() as first, serve(reply_with(ANSWER)).running() as second:
        ask("generate", first, "--problem", reference, "--run", "mine")
        done = ask("generate", second, "--problem", reference, "--run", "mine", "--samples", "2")
        assert second.requests == []
    assert done.returncode == 2
    assert f"base_url: '{first.base_url}' there, '{second.base_url}' asked" in done.stderr
    assert read_manifest(tmp_path / "generated" / "mine").base_url == first.base_url
