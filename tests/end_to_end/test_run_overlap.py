"""`harness run` evaluates early answers while it asks for later ones."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from chat_server import ChatServer, reply_with

HEAD = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n"
LONGEST_WAIT_S = 120.0


def count_verdicts(folder: Path) -> int:
    if not (folder / "results" / "harness.db").exists():
        return 0
    connection = sqlite3.connect(f"file:{folder}/results/harness.db?mode=ro", uri=True)
    try:
        return connection.execute("SELECT count(*) FROM evaluations").fetchone()[0]
    except sqlite3.OperationalError:  # not yet a whole database
        return 0
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 2])
def test_the_first_verdict_is_recorded_before_the_last_answer_comes(turns, tmp_path, tiny_suite, call_harness):
    recorded = []

    def answer_slowly(number, request):
        if number == 3:
            deadline_s = time.monotonic() + LONGEST_WAIT_S
            while not count_verdicts(tmp_path) and time.monotonic() < deadline_s:
                time.sleep(0.05)
            recorded.append(count_verdicts(tmp_path))
        return reply_with(f"```python\n# answer {number}\n{HEAD}        return 1 * (a + b)\n```\n")

    server = ChatServer(answer_slowly)
    arguments = ["run", "--problems-dir", tiny_suite.parent, "--suite", "tiny", "--language", "cpp", "--no-time"]
    with server.running():
        endpoint = ["--model", "m", "--base-url", server.base_url, "--concurrency", 1]
        done = call_harness([*arguments, *endpoint, "--samples", 3, "--turns", turns])
    assert done.returncode == 0, done.stderr
    assert (len(server.requests), count_verdicts(tmp_path)) == (3, 3)
    assert recorded[0] in (1, 2)
