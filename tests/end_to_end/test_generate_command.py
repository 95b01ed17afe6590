"""`harness generate` and `harness extract` as a user types them: real files, a real local endpoint, and a process of
its own where that is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from chat_server import ANSWER, PROGRAM, ChatServer, Reply, reply_with, serve

from harness.cli.main import run_command
from harness.store.runs import load_samples, read_manifest

PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + {number}


def get_inputs():
    return [torch.rand(3)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a suite of three problems; prompts are those of the checkout."""
    suite = tmp_path / "reference_models" / "tiny"
    suite.mkdir(parents=True)
    for number, name in enumerate(("add_one", "add_two", "softmax")):
        (suite / f"{name}.py").write_text(PROBLEM.format(number=number))
    return tmp_path


def _start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "harness.cli.main", *arguments],
        cwd=folder,
        env={**kept, "COLUMNS": "80", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In this process: most of what a process of its own would do is import."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        patch.chdir(folder)
        for name in {*os.environ} - {"PATH", "HOME"}:
            patch.delenv(name)
        for name, value in {"COLUMNS": "80", **environment}.items():
            patch.setenv(name, value)
        code = run_command([*arguments])
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def _generate(folder: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _run(folder, "generate", "--suite", "tiny", "--model", "m", "--base-url", url, *arguments)


def test_a_run_stores_every_sample_and_prints_one_record(folder: Path) -> None:
    with serve(reply_with()).running() as server:
        done = _generate(folder, server.base_url, "--samples", "2", "--run", "first", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["run"], record["planned"], record["stored"], record["failed"]) == ("first", 6, 6, [])
    samples = load_samples(folder / "generated" / "first")
    assert [(sample.key.problem, sample.key.sample) for sample in samples] == [
        (problem, number) for problem in ("add_one", "add_two", "softmax") for number in (0, 1)
    ]
    assert {sample.candidate.source for sample in samples if sample.candidate} == {PROGRAM}


def test_a_complete_run_asks_for_nothing_more(folder: Path) -> None:
    with serve(reply_with()).running() as server:
        for _ in range(2):
            done = _generate(folder, server.base_url, "--run", "first")
        assert len(server.requests) == 3
    assert "0 stored (0 without code), 3 already there, 0 failed" in done.stdout


def test_a_run_grows_by_what_is_missing(folder: Path) -> None:
    with serve(reply_with()).running() as server:
        _generate(folder, server.base_url, "--run", "first", "--problem", "softmax")
        _generate(folder, server.base_url, "--run", "first", "--samples", "3")
        assert len(server.requests) == 9
    assert read_manifest(folder / "generated" / "first").samples == 3


@pytest.mark.slow
def test_a_killed_run_issued_again_asks_only_for_what_is_missing(folder: Path) -> None:
    server = ChatServer(lambda number, request: reply_with(delay_s=0.01))
    arguments = ("generate", "--suite", "tiny", "--model", "m", "--samples", "25", "--concurrency", "2")
    with server.running():
        process = _start(folder, *arguments, "--base-url", server.base_url)
        while len(server.requests) < 25 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        [run_dir] = (folder / "generated").iterdir()
        before = {str(sample.key): sample for sample in load_samples(run_dir)}
        asked_before = len(server.requests)
        done = _run(folder, *arguments, "--base-url", server.base_url)
    assert done.returncode == 0, done.stderr
    assert asked_before - 12 <= len(before) <= asked_before  # but for those under way when it was killed
    assert len(server.requests) - asked_before == 75 - len(before)
    after = {str(sample.key): sample for sample in load_samples(run_dir)}
    assert len(after) == 75
    assert {key: after[key] for key in before} == before
    assert [path.name for path in run_dir.iterdir() if path.name.startswith(".partial")] == []


@pytest.mark.slow
def test_an_interrupt_keeps_what_came(folder: Path) -> None:
    server = ChatServer(lambda number, request: reply_with(delay_s=0.0 if number <= 2 else 120.0))
    with server.running():
        process = _start(folder, "generate", "--suite", "tiny", "--model", "m", "--base-url", server.base_url)
        while len([*folder.glob("generated/*/*/0")]) < 2 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "received answers are stored" in err
    [run_dir] = (folder / "generated").iterdir()
    assert len(load_samples(run_dir)) == 2


def test_a_failing_sample_is_reported_and_the_others_are_kept(folder: Path) -> None:
    bad = Reply(status=400, body=b'{"error": {"message": "too long"}}', headers={"Content-Type": "application/json"})
    server = ChatServer(lambda number, request: bad if "x + 1" in request["messages"][0]["content"] else reply_with())
    with server.running():
        done = _generate(folder, server.base_url, "--run", "first", "--json")
    assert done.returncode == 1
    assert "failed: add_two/0:" in done.stderr
    assert [failure["problem"] for failure in json.loads(done.stdout)["failed"]] == ["add_two"]
    assert len(load_samples(folder / "generated" / "first")) == 2


def _refuse(status: int) -> Reply:
    body = b'{"error": {"message": "forbidden"}}'
    return Reply(status=status, body=body, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_ends_the_run_soon_and_keeps_what_came(folder: Path, status: int) -> None:
    with serve(reply_with(), _refuse(status)).running() as server:
        done = _generate(folder, server.base_url, "--run", "first", "--samples", "50", "--concurrency", "1")
        assert len(server.requests) < 20
    assert done.returncode == 3
    assert "check OPENAI_API_KEY" in done.stderr
    assert "harness failed" not in done.stderr
    assert len(load_samples(folder / "generated" / "first")) == 1


def test_a_short_run_that_is_refused_ends_with_the_advice(folder: Path) -> None:
    with serve(_refuse(404)).running() as server:
        done = _generate(folder, server.base_url)
    assert (done.returncode, "check --model and --base-url" in done.stderr) == (3, True)
    assert [*folder.glob("generated/*")] == []


@pytest.mark.parametrize("status", [401, 404])
@pytest.mark.quick(1)
def test_refused_prompts_fail_and_the_others_are_stored(folder: Path, status: int) -> None:
    def choose(number: int, request: dict[str, Any]) -> Reply:
        return _refuse(status) if "x + 1" in request["messages"][0]["content"] else reply_with()

    with ChatServer(choose).running() as server:
        done = _generate(folder, server.base_url, "--run", "first", "--samples", "20", "--json")
        record = json.loads(done.stdout)
        assert (done.returncode, record["stored"], len(record["failed"])) == (1, 40, 20)
        again = _generate(folder, server.base_url, "--run", "first", "--samples", "20", "--json")
    assert (again.returncode, json.loads(again.stdout)["already_there"]) == (1, 40)


def test_an_answer_that_is_only_reasoning_names_the_reasoning_parser(folder: Path) -> None:
    with serve(reply_with(None, reasoning_content=ANSWER)).running() as server:
        done = _generate(folder, server.base_url, "--problem", "softmax", "--json")
    assert json.loads(done.stdout)["only_reasoning"] == 1
    assert "only_reasoning: 1 of 1 answers; softmax/0: the content of the answer is empty" in done.stderr
    assert "--reasoning-parser" in done.stderr


def test_the_field_of_the_token_limit_is_an_option(folder: Path) -> None:
    options = ("--problem", "softmax", "--max-tokens", "9", "--token-limit-name", "max_completion_tokens")
    with serve(reply_with()).running() as server:
        _generate(folder, server.base_url, *options)
    assert server.requests[0]["max_completion_tokens"] == 9


def test_a_completion_without_code_is_stored_and_counted(folder: Path) -> None:
    with serve(reply_with(None, finish_reason="length")).running() as server:
        done = _generate(folder, server.base_url, "--problem", "softmax", "--json")
    assert json.loads(done.stdout)["without_code"] == 1


@pytest.mark.parametrize(
    ("reason", "check", "words"),
    [("length", "truncated", "set --max-tokens"), ("content_filter", "filtered", "content filter"),
     (None, "no_finish_reason", "gave no finish_reason")],
)  # fmt: skip
def test_answers_that_were_cut_off_are_counted_by_their_cause(folder: Path, reason, check: str, words: str) -> None:
    with serve(reply_with("```python\nclass ModelNew(", finish_reason=reason)).running() as server:
        done = _generate(folder, server.base_url, "--problem", "softmax", "--json")
    assert json.loads(done.stdout)[check] == 1
    assert f"{check}: 1 of 1 answers; softmax/0: the " in done.stderr
    assert words in done.stderr


def test_a_full_disk_says_so_and_keeps_what_came(folder: Path) -> None:
    with serve(reply_with()).running() as server:
        _generate(folder, server.base_url, "--run", "first", "--problem", "add_one")
        (folder / "generated" / "first" / "add_two").write_text("in the way")
        done = _generate(folder, server.base_url, "--run", "first")
    assert done.returncode == 3
    assert "cannot write generated/first/add_two/0" in done.stderr
    assert len(load_samples(folder / "generated" / "first")) >= 1


def test_a_run_with_other_settings_is_refused(folder: Path) -> None:
    with serve(reply_with()).running() as server:
        _generate(folder, server.base_url, "--run", "first")
        done = _generate(folder, server.base_url, "--run", "first", "--prompt", "tips")
    assert done.returncode == 2
    assert "prompt: 'plain' there, 'tips' asked" in done.stderr


def test_a_missing_key_sends_and_writes_nothing(folder: Path) -> None:
    done = _run(folder, "generate", "--suite", "tiny", "--model", "m")
    assert done.returncode == 2
    assert "set OPENAI_API_KEY" in done.stderr
    assert not (folder / "generated").exists()


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("--problem", "sofmax", "softmax"),
        ("--suite", "tinny", "tiny"),
        ("--prompt", "tip", "did you mean tips"),
        ("--gpu", "H20", "did you mean H200"),
        ("--run", "../up", "cannot be a folder name"),
        ("--recording", "nowhere", "no recording at nowhere"),
    ],
)
def test_a_wrong_name_suggests_the_nearest(folder: Path, option: str, value: str, hint: str) -> None:
    provider = "recorded" if option == "--recording" else "openai"
    arguments = ("--model", "m", "--base-url", "http://localhost:1/v1", "--provider", provider)
    done = _run(folder, "generate", "--suite", "tiny", *arguments, option, value)
    assert done.returncode == 2
    assert hint in done.stderr


def test_a_dry_run_prints_the_exact_prompt_that_is_sent(folder: Path) -> None:
    dry = _run(folder, "generate", "--suite", "tiny", "--problem", "softmax", "--dry-run")
    with serve(reply_with()).running() as server:
        _generate(folder, server.base_url, "--problem", "softmax")
        assert server.requests[0]["messages"] == [{"role": "user", "content": dry.stdout}]
    assert dry.stderr == ""


def test_a_dry_run_as_json_is_one_record_per_prompt(folder: Path) -> None:
    dry = _run(folder, "generate", "--suite", "tiny", "--problem", "softmax", "--dry-run", "--json")
    (record,) = [json.loads(line) for line in dry.stdout.splitlines()]
    assert (record["problem"], record["name"], record["language"]) == ("softmax", "plain", "cuda")
    text = _run(folder, "generate", "--suite", "tiny", "--problem", "softmax", "--dry-run").stdout
    assert record["text"] == text


def test_a_dry_run_of_a_suite_shows_every_prompt(folder: Path) -> None:
    done = _run(folder, "generate", "--suite", "tiny", "--language", "cpp", "--dry-run")
    assert [line for line in done.stdout.split("\n") if line.startswith("=====")] == [
        f"===== {name} =====" for name in ("add_one", "add_two", "softmax")
    ]


def test_a_dry_run_counts_the_requests_that_are_made_then(folder: Path) -> None:
    with serve(reply_with()).running() as server:
        asked = ("--suite", "tiny", "--model", "m", "--base-url", server.base_url, "--samples", "2", "--run", "r")
        expected = json.loads(_run(folder, "run", *asked, "--dry-run", "--json").stdout)["total"]["requests"]
        assert server.requests == []
        assert _run(folder, "generate", *asked, OPENAI_API_KEY="x").returncode == 0
        assert len(server.requests) == expected == 6
        after = json.loads(_run(folder, "run", *asked, "--dry-run", "--json").stdout)["total"]
        assert (after["stored"], after["requests"]) == (6, 0)


def test_a_run_is_a_recording(folder: Path) -> None:
    with serve(reply_with(reasoning="hm")).running() as server:
        _generate(folder, server.base_url, "--run", "first")
    done = _run(
        folder,
        "generate",
        "--suite",
        "tiny",
        "--provider",
        "recorded",
        "--recording",
        "generated/first",
        "--run",
        "second",
    )
    assert done.returncode == 0, done.stderr
    first, second = (load_samples(folder / "generated" / name) for name in ("first", "second"))
    assert [sample.completion for sample in first] == [sample.completion for sample in second]
    assert {sample.model for sample in second} == {"m"}


def _record_softmax(folder: Path) -> None:
    recorded = folder / "recordings" / "demo" / "cpp" / "softmax" / "0"
    recorded.mkdir(parents=True)
    (recorded / "completion.md").write_text(ANSWER)


def test_a_replay_asks_for_the_problems_that_were_recorded(folder: Path) -> None:
    _record_softmax(folder)
    done = _run(folder, "generate", "--suite", "tiny", "--provider", "recorded", "--language", "cpp", "--run", "replay")
    assert done.returncode == 0, done.stderr
    assert read_manifest(folder / "generated" / "replay").problems == ("softmax",)
    assert "skipped" not in done.stderr


def test_unrecorded_samples_are_skipped_with_a_note(folder: Path) -> None:
    _record_softmax(folder)
    named = ("--problem", "softmax", "--problem", "add_one")
    done = _run(folder, "generate", "--suite", "tiny", "--provider", "recorded", "--language", "cpp", *named, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["unrecorded"] == ["add_one/0"]
    assert "skipped, not in the recording: add_one/0" in done.stderr


def test_a_recording_with_nothing_that_fits_is_an_error(folder: Path) -> None:
    (folder / "recordings" / "demo").mkdir(parents=True)
    done = _run(folder, "generate", "--suite", "tiny", "--provider", "recorded")
    assert done.returncode == 2
    assert "has none of the 3 requested samples" in done.stderr
    assert not (folder / "generated").exists()


def test_extract_prints_the_program_and_names_the_rule(folder: Path) -> None:
    (folder / "raw.md").write_text(f"<think>hm</think>\n{ANSWER}")
    done = _run(folder, "extract", "raw.md")
    assert (done.stdout, done.stderr, done.returncode) == (PROGRAM, "rule fence, lines 4 to 9\n", 0)
    record = json.loads(_run(folder, "extract", "raw.md", "--json").stdout)
    assert record == {
        "source": PROGRAM,
        "rule": "fence",
        "first_line": 4,
        "last_line": 9,
        "reason": "the only program",
        "joined": [],
        "alternatives": [],
        "more_alternatives": 0,
    }


def test_extract_names_the_chosen_program_and_the_reasons(folder: Path) -> None:
    naive = "class ModelNew:\n    x = 1\n"
    (folder / "raw.md").write_text(f"{ANSWER}\nFor comparison, the naive version:\n\n```python\n{naive}```\n")
    done = _run(folder, "extract", "raw.md")
    assert (done.stdout, done.returncode) == (PROGRAM, 0)
    first, second = done.stderr.splitlines()
    assert first.endswith("; chosen from 2 programs in the answer: the text rejects the others")
    assert second.endswith(': the text rejects it: "For comparison, the naive version:"')
    assert second.startswith("not taken: rule fence, lines ")


def test_extract_without_a_program_exits_with_one(folder: Path) -> None:
    (folder / "raw.md").write_text("no")
    done = _run(folder, "extract", "raw.md")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "no program with ModelNew in raw.md" in done.stderr
    (folder / "raw.md").write_text(f"<think>\n{ANSWER}")
    assert "the text after the mark <think> in line 1 counts as reasoning" in _run(folder, "extract", "raw.md").stderr
    assert _run(folder, "extract", "missing.md").returncode == 2
