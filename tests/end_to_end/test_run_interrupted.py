"""`harness run` killed and issued again: it goes on with the same run, asks for nothing twice and keeps every verdict
once."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest
from chat_server import ChatServer, reply_with

HEAD = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n"
GOOD = f"```python\n{HEAD}        return a + b\n```\n"
HANGING = f"```python\n{HEAD}        while True: pass\n```\n"
SAMPLES = 4


def read_verdicts(results_dir: Path) -> list[tuple[str, int, str]]:
    """Run, sample and outcome of every evaluation ever stored."""
    if not (results_dir / "harness.db").exists():
        return []
    connection = sqlite3.connect(f"file:{results_dir}/harness.db?mode=ro", uri=True)
    try:
        return connection.execute("SELECT run, sample, outcome FROM evaluations ORDER BY sample").fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def wait_for_verdicts(results_dir: Path, count: int, process) -> None:
    deadline_s = time.monotonic() + 120
    while len(read_verdicts(results_dir)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "no verdict came"
        time.sleep(0.05)


def make_arguments(server: ChatServer, suite: Path) -> list[object]:
    fixed = ["run", "--problems-dir", suite.parent, "--suite", "tiny", "--language", "cpp", "--no-time", "--model", "m"]
    return [*fixed, "--base-url", server.base_url, "--samples", SAMPLES, "--concurrency", 1]


@pytest.mark.slow
def test_killed_while_evaluating_it_goes_on_and_asks_for_nothing_twice(
    tmp_path, tiny_suite, start_harness, call_harness
):
    results = tmp_path / "results"
    server = ChatServer(lambda number, request: reply_with(HANGING if number == 3 else GOOD))
    with server.running():
        arguments = make_arguments(server, tiny_suite)
        process = start_harness(arguments)
        wait_for_verdicts(results, 2, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        before = read_verdicts(results)
        assert [outcome for _, _, outcome in before] == ["correct", "correct"]

        done = call_harness([*arguments, "--first-call-timeout", "1.5"])
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == SAMPLES
        after = read_verdicts(results)
        assert [(sample, outcome) for _, sample, outcome in after] == [
            (0, "correct"), (1, "correct"), (2, "timeout"), (3, "correct"),
        ]  # fmt: skip
        assert set(before) <= set(after)
        assert len([*(tmp_path / "generated").iterdir()]) == 1

        again = call_harness(arguments)
        assert again.returncode == 0, again.stderr
        assert len(server.requests) == 2 * SAMPLES, "a run with all its verdicts is finished: the next one is new"
        assert sorted(Counter(run for run, _, _ in read_verdicts(results)).values()) == [SAMPLES, SAMPLES]


@pytest.mark.slow
def test_a_killed_replay_goes_on_with_its_run(tmp_path, tiny_suite, start_harness, call_harness):
    (tiny_suite / "other.py").write_text((tiny_suite / "add.py").read_text())  # of this nothing is recorded
    for number, text in enumerate((GOOD, HANGING)):
        folder = tmp_path / "recording" / "add" / str(number)
        folder.mkdir(parents=True)
        (folder / "completion.md").write_text(text)
    fixed = ["run", "--problems-dir", tiny_suite.parent, "--suite", "tiny", "--language", "cpp", "--no-time"]
    arguments = [*fixed, "--provider", "recorded", "--recording", "recording", "--samples", 2]
    process = start_harness(arguments)
    wait_for_verdicts(tmp_path / "results", 1, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = call_harness([*arguments, "--first-call-timeout", "1.5"])
    assert done.returncode == 0, done.stderr
    assert [outcome for _, _, outcome in read_verdicts(tmp_path / "results")] == ["correct", "timeout"]
    assert len([*(tmp_path / "generated").iterdir()]) == 1
