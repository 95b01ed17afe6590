"""`harness run --turns` and `harness improve` against a real server that answers by what was fed back."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from chat_server import ChatServer, reply_with

HEAD = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n"
GOOD = f"{HEAD}        total = a + b\n        return total\n"
WRONG = f"{HEAD}        return a - b\n"
BROKEN = f"{HEAD}        return a + bb\n"


def answer(program: str) -> str:
    return f"Some reasoning first.\n```python\n{program}```\n"


def read_verdicts(folder: Path) -> list[tuple[int, int, str]]:
    """Sample, turn and outcome of every evaluation ever stored."""
    if not (folder / "results" / "harness.db").exists():
        return []
    connection = sqlite3.connect(f"file:{folder}/results/harness.db?mode=ro", uri=True)
    try:
        return connection.execute("SELECT sample, turn, outcome FROM evaluations ORDER BY sample, turn").fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


@pytest.fixture
def arguments(tiny_suite):
    def make(server: ChatServer, *more: object, command: tuple[object, ...] = ("run", "--turns", 4)) -> list[object]:
        fixed = ["--problems-dir", tiny_suite.parent, "--suite", "tiny", "--no-time", "--model", "m"]
        cpp = ["--language", "cpp"] if command[0] == "run" else []
        return [*command, *fixed, *cpp, "--base-url", server.base_url, *more]

    return make


def by_feedback(number: int, request: dict) -> object:
    """A run-time error first, then a wrong value, then the right program, as the feedback demands."""
    last = request["messages"][-1]["content"]
    if "runtime_error" in last:
        return reply_with(answer(WRONG), reasoning="secret thoughts")
    is_last_step = "Result: wrong_value" in last or "Result: timeout" in last
    return reply_with(answer(GOOD if is_last_step else BROKEN), reasoning="secret thoughts")


@pytest.mark.slow
def test_a_sample_goes_on_from_its_verdicts_until_it_is_correct(arguments, call_harness, tmp_path):
    server = ChatServer(by_feedback)
    with server.running():
        done = call_harness(arguments(server, "--run", "r"))
    assert done.returncode == 0, done.stderr
    assert read_verdicts(tmp_path) == [(0, 0, "runtime_error"), (0, 1, "wrong_value"), (0, 2, "correct")]
    assert "add/0: runtime_error > wrong_value > correct" in done.stdout

    last = server.requests[-1]["messages"]
    assert [one["role"] for one in last] == ["user", "assistant", "user", "assistant", "user"]
    assert "name 'bb' is not defined" in last[2]["content"]
    assert "return a - b" in last[3]["content"]
    assert "secret thoughts" not in json.dumps(last)
    turn = tmp_path / "generated" / "r" / "add" / "0" / "turn-2"
    assert json.loads((turn / "provenance.json").read_text())["parent"] == 1
    assert (turn / "prompt.md").read_text() == last[-1]["content"]
    assert len(json.loads((turn / "messages.json").read_text())) == 4


@pytest.mark.slow
def test_stored_run_continues_with_its_model_and_keeps_its_answers(arguments, call_harness, tmp_path, tiny_suite):
    server = ChatServer(by_feedback)
    suite = ["--problems-dir", tiny_suite.parent]
    with server.running():
        fixed = [*suite, "--suite", "tiny", "--language", "cpp", "--model", "m", "--base-url", server.base_url]
        assert call_harness(["generate", *fixed, "--run", "r", "--samples", 2]).returncode == 0
        done = call_harness(["improve", "r", *suite, "--no-time"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("runtime_error > wrong_value > correct; best: turn 2 (turn 2 is correct)") == 2
    assert len(server.requests) == 6
    assert {request["model"] for request in server.requests} == {"m"}


@pytest.mark.slow
def test_the_turns_of_a_finished_run_are_not_asked_again(arguments, call_harness, tmp_path):
    server = ChatServer(by_feedback)
    with server.running():
        assert call_harness(arguments(server, "--run", "r", "--samples", 2)).returncode == 0
        asked, verdicts = len(server.requests), read_verdicts(tmp_path)
        again = call_harness(arguments(server, "--run", "r", "--samples", 2))
    assert again.returncode == 0, again.stderr
    assert (len(server.requests), asked) == (6, 6)
    assert read_verdicts(tmp_path) == verdicts


@pytest.mark.slow
def test_repeated_program_is_not_evaluated_again_and_the_model_is_told(arguments, call_harness, tmp_path):
    server = ChatServer(lambda number, request: reply_with(answer(f"# try {number}\n{WRONG}")))
    with server.running():
        done = call_harness(arguments(server, "--run", "r", "--patience", 2))
    assert done.returncode == 0, done.stderr
    assert read_verdicts(tmp_path) == [(0, 0, "wrong_value")]
    assert "wrong_value > same as turn 0 > same as turn 0 (2 turns without a gain)" in done.stdout
    assert "This is the same program as in turn 0" in server.requests[-1]["messages"][-1]["content"]


STRANGE = (
    "I am sorry, I cannot help with that.",
    "```rust\nfn main() {}\n```",
    "```python\nimport torch\n\nclass ModelNew(torch.nn.Module):\n    def forw",
    None,
    answer(f"{HEAD}        return a + b\n"),  # a copy of the reference
)


@pytest.mark.slow
def test_the_search_goes_on_after_an_answer_that_is_no_solution(arguments, call_harness, tmp_path):
    server = ChatServer(
        lambda number, request: reply_with(STRANGE[number - 1] if len(request["messages"]) == 1 else answer(GOOD))
    )
    with server.running():
        done = call_harness(arguments(server, "--run", "r", "--samples", len(STRANGE), "--concurrency", 1))
    assert done.returncode == 0, done.stderr
    solved = [(sample, outcome) for sample, turn, outcome in read_verdicts(tmp_path) if turn == 1]
    assert solved == [(sample, "correct") for sample in range(len(STRANGE))], done.stdout
    assert done.stdout.count("best: turn 1") == len(STRANGE)
    assert "a copy of the reference > correct" in done.stdout
    told = [request["messages"][-1]["content"] for request in server.requests]
    assert any("the reference under another name" in text for text in told)
    assert any("holds no Python program" in text for text in told)


@pytest.mark.slow
def test_a_budget_of_zero_asks_nothing(arguments, call_harness, tmp_path):
    server = ChatServer(by_feedback)
    with server.running():
        done = call_harness(arguments(server, "--run", "r", "--budget-tokens", 0))
    assert "the budget of 0 tokens is spent" in done.stdout, done.stderr
    assert server.requests == []
    assert not (tmp_path / "generated" / "r").exists()


@pytest.mark.slow
def test_only_correct_screened_candidates_get_the_full_evaluation(arguments, call_harness, tmp_path):
    server = ChatServer(lambda number, request: reply_with(answer(WRONG if number == 1 else GOOD)))
    with server.running():
        done = call_harness(arguments(server, "--run", "r", "--screen", "small"))
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(f"file:{tmp_path}/results/harness.db?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT turn, device, workload, outcome, findings FROM evaluations").fetchall()
    assert [row[:4] for row in rows] == [(0, "cpu", "full", "wrong_value"), (1, "cpu", "full", "correct")]
    assert ["note: screen" in row[4] for row in rows] == [True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--screen", "emulated"), "language cpp is not emulated"),
        (("--budget-usd", "1"), "--price 'm=IN/OUT'"),
        (("--target", "fast"), "--target fast: give a share of the roofline"),
        (("--width", "3"), "--width is for the strategies beam and evolve"),
    ],
)
def test_options_that_cannot_hold_are_refused_before_anything_is_asked(options, message, arguments, call_harness):
    server = ChatServer(by_feedback)
    with server.running():
        done = call_harness(arguments(server, *options))
    assert done.returncode == 2
    assert message in done.stderr
    assert server.requests == []


def test_a_strategy_that_needs_timing_is_refused_before_anything_is_asked(arguments, call_harness):
    server = ChatServer(by_feedback)
    with server.running():
        done = call_harness(arguments(server, "--strategy", "optimise"))
    assert done.returncode == 2
    assert "optimise needs timing" in done.stderr
    assert server.requests == []


@pytest.mark.slow
def test_search_killed_in_a_turn_resumes_and_a_second_command_is_refused(
    arguments, start_harness, call_harness, tmp_path
):
    hanging = f"{HEAD}        while True: pass\n"
    server = ChatServer(
        lambda number, request: reply_with(answer(hanging)) if number == 2 else by_feedback(number, request)
    )
    with server.running():
        process = start_harness(arguments(server, "--run", "r"))
        deadline_s = time.monotonic() + 300
        answered = tmp_path / "generated" / "r" / "add" / "0" / "turn-1" / "completion.json"
        while not answered.exists() or len(read_verdicts(tmp_path)) < 1:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline_s, "no verdict came"
            time.sleep(0.05)
        beside = call_harness(arguments(server, "--run", "r"))
        assert beside.returncode == 2
        assert "another process" in beside.stderr
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        before = len(server.requests)
        assert read_verdicts(tmp_path) == [(0, 0, "runtime_error")]
        done = call_harness(arguments(server, "--run", "r", "--first-call-timeout", "1.5"))
    assert done.returncode == 0, done.stderr
    assert before == 2
    assert read_verdicts(tmp_path) == [(0, 0, "runtime_error"), (0, 1, "timeout"), (0, 2, "correct")], done.stdout
    assert len(server.requests) == 3, "the answer of the turn in which it was killed was stored"


@pytest.mark.slow
def test_best_program_is_written_beside_the_file_with_its_history(arguments, call_harness, tmp_path, tiny_suite):
    own = tmp_path / "own.py"
    own.write_text(WRONG)
    server = ChatServer(by_feedback)
    problem = ("--problem", tiny_suite / "add.py")
    with server.running():
        done = call_harness(arguments(server, *problem, command=("improve", own)))
        assert done.returncode == 0, done.stderr
        again = call_harness(arguments(server, *problem, command=("improve", own)))
    best = (tmp_path / "own.best.py").read_text()
    assert best.endswith(GOOD)
    assert "# turn 0: wrong_value\n# turn 1: correct\n" in best
    assert own.read_text() == WRONG
    assert len(server.requests) == 1
    assert "return a - b" in server.requests[0]["messages"][1]["content"]
    assert again.returncode == 0
    assert "own.best.py" in again.stdout


@pytest.mark.slow
def test_file_without_a_kernel_is_refused_unless_its_language_is_given(arguments, call_harness, tmp_path, tiny_suite):
    own = tmp_path / "own.py"
    own.write_text(f"# no kernel\n{WRONG}")
    server = ChatServer(lambda number, request: reply_with(answer(f"# {number}\n{WRONG}")))
    command = ("improve", own, "--problem", tiny_suite / "add.py", "--turns", 1)
    with server.running():
        failed = call_harness(arguments(server, command=command))
        as_torch = call_harness(arguments(server, "--language", "torch", command=command))
    for done in (failed, as_torch):
        assert done.returncode == 1, done.stderr
        assert "turn 0: wrong_value: output: " in done.stderr
    manifests = [json.loads(path.read_text()) for path in (tmp_path / "generated").glob("*/manifest.json")]
    assert sorted(one["language"] for one in manifests) == ["cpp", "torch"]
