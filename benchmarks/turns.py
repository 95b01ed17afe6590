"""How close a search over turns comes to the ideal, and what kill -9 costs it.

Run on an idle machine: python benchmarks/turns.py [speed|kills] [--samples 64] [--kills 50]
speed: samples of four turns against a server that answers after 1 s. The ideal is the time of the slowest resource
alone: the server's (requests / concurrency), or that of `harness evaluate` for the same programs. Goal: 85 % of it.
kills: the same search, killed at random moments and issued again until it ends. Goal: each turn is stored and evaluated
once, and no answer is asked for twice but those that were under way when the command was killed, or had been sent less
than 0.1 s before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TURNS, LATENCY_S, CONCURRENCY = 4, 1.0, 16
TO_STORE_S = 0.1
EFFICIENCY = 0.85
PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(64, 65), torch.randn(64, 65)]


def get_init_inputs():
    return []
"""
PROGRAM = """Here it is.
```python
import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        scale = {number}.0
        return a {sign} b * scale / scale
```
"""


class Endpoint:
    """Answers with another wrong program each time, and with a right one in the last turn."""

    def __init__(self) -> None:
        self.asked = 0
        self.under_way = 0
        self._lock = threading.Lock()

    def answer(self, request: dict[str, list[dict[str, str]]]) -> bytes:
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        with self._lock:
            self.asked += 1
            self.under_way += 1
            number = self.asked
        time.sleep(LATENCY_S)
        threading.Timer(TO_STORE_S, self._end).start()
        content = PROGRAM.format(number=number + 1, sign="+" if turn == TURNS - 1 else "-")
        return json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}).encode()

    def _end(self) -> None:
        with self._lock:
            self.under_way -= 1

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The base URL."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = endpoint.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: object, client_address: object) -> None:
                """Clients are killed."""

        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


class Search:
    def __init__(self, folder: Path, samples: int, base_url: str) -> None:
        suite = folder / "problems" / "tiny"
        suite.mkdir(parents=True)
        (suite / "add.py").write_text(PROBLEM)
        self.folder, self.samples = folder, samples
        self._search = [
            "run", "--run", "r", "--suite", "tiny", "--language", "cpp", "--model", "m", "--base-url", base_url,
            "--samples", str(samples), "--turns", str(TURNS), "--concurrency", str(CONCURRENCY),
        ]  # fmt: skip

    def start(self) -> subprocess.Popen[bytes]:
        return self._start(*self._search)

    def finish(self) -> float:
        """Seconds."""
        return self._take(self.start())

    def evaluate_again(self) -> float:
        """Seconds that `harness evaluate` takes for all programs of the run, with results of its own."""
        return self._take(self._start("evaluate", "r", "--results-dir", "again"))

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "harness", *words, "--problems-dir", "problems", "--no-time"]
        return subprocess.Popen(
            command, cwd=self.folder, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])},
        )  # fmt: skip

    def _take(self, process: subprocess.Popen[bytes]) -> float:
        began_s = time.monotonic()
        _, errors = process.communicate()
        if process.returncode:
            raise SystemExit(errors.decode())
        return time.monotonic() - began_s

    def count_verdicts(self) -> tuple[int, int]:
        """(turns with a verdict, verdicts)."""
        with closing(sqlite3.connect(self.folder / "results" / "harness.db")) as database:
            rows = database.execute("SELECT sample, turn FROM evaluations WHERE outcome != 'harness_error'").fetchall()
        return len(set(rows)), len(rows)


def measure_speed(samples: int) -> bool:
    endpoint = Endpoint()
    with tempfile.TemporaryDirectory() as folder, endpoint.serve() as base_url:
        search = Search(Path(folder), samples, base_url)
        took_s = search.finish()
        alone_s = search.evaluate_again()
    answering_s = endpoint.asked * LATENCY_S / CONCURRENCY
    ideal_s = max(alone_s, answering_s)
    print(f"{samples} samples, {endpoint.asked} answers: {took_s:.1f} s")
    print(f"alone: answers {answering_s:.1f} s, evaluations {alone_s:.1f} s; {ideal_s / took_s:.0%} of the ideal")
    return ideal_s >= EFFICIENCY * took_s


def measure_kills(samples: int, kills: int) -> bool:
    endpoint, source, cut = Endpoint(), random.Random(0), 0
    with tempfile.TemporaryDirectory() as folder, endpoint.serve() as base_url:
        search = Search(Path(folder), samples, base_url)
        for killed in range(kills):
            process = search.start()
            try:
                process.communicate(timeout=source.uniform(1.0, 6.0))
                print(f"it ended before kill {killed + 1}")
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                cut += endpoint.under_way
                process.communicate()
                time.sleep(LATENCY_S + 2 * TO_STORE_S)
        search.finish()
        turns, verdicts = search.count_verdicts()
    wanted = samples * TURNS
    print(f"{wanted} turns: {turns} with a verdict, {verdicts} verdicts")
    print(f"{endpoint.asked} answers, {cut} of them under way at a kill: {endpoint.asked - cut - wanted} asked twice")
    return (turns, verdicts, endpoint.asked - cut) == (wanted, wanted, wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "kills"])
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--kills", type=int, default=50)
    options = parser.parse_args()
    is_speed = options.what == "speed"
    met = measure_speed(options.samples) if is_speed else measure_kills(options.samples, options.kills)
    print(f"goal: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
