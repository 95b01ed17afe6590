"""Load on the evaluation service: lost requests, time of `/status`, overhead, memory.

A scripted executor stands for the devices (`--evaluation-ms`, eight at a time), so that the service is measured and not
the evaluator. Clients, server and the prober of `/status` are processes of their own.

    python benchmarks/service.py --clients 200 --requests 2000 --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SLOTS = 8
PROBE_EVERY_S, QUIET_S = 0.01, 10.0
PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, a):
        return a
def get_inputs():
    return [torch.randn(8)]
def get_init_inputs():
    return []
"""


class ScriptedExecutor:
    """Every candidate is wrong, after `seconds`."""

    capacity = 2 * SLOTS

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(SLOTS)

    def devices(self, language: str) -> tuple[Any, ...]:
        from harness.executors.executor import DeviceFacts

        return (DeviceFacts(name="cpu", chip="scripted"),)

    def submit(self, task: Any) -> Future[Any]:
        return self._pool.submit(self._evaluate, task)

    def _evaluate(self, task: Any) -> Any:
        from harness.domain import Evaluation, Outcome

        time.sleep(self._seconds)
        environment = (("harness", "benchmark"), ("cpu", "scripted"))
        subject = task.on_device("cpu").subject
        return Evaluation(subject=subject, outcome=Outcome.WRONG_VALUE, message="scripted", environment=environment)

    def status(self) -> Any:
        from harness.executors.executor import ExecutorStatus

        return ExecutorStatus(building=0, builds={}, devices=())

    def close(self) -> None:
        self._pool.shutdown()


def serve(folder: Path, seconds: float) -> None:
    from harness.service.server import serve as run
    from harness.service.service import Service
    from harness.service.settings import ServiceSettings

    problems = folder / "problems" / "tiny"
    problems.mkdir(parents=True)
    (problems / "add.py").write_text(PROBLEM)
    settings = ServiceSettings(folder=folder / "queue", problems_dir=problems.parent)
    run(Service(settings, ScriptedExecutor(seconds)), "127.0.0.1", 0)


def make_bodies(count: int, duplicates: float, round_number: int) -> list[dict[str, Any]]:
    """In random order; duplicates repeat task id and program."""
    unique = max(round(count * (1 - duplicates)), 1)
    numbers = [*range(unique), *random.choices(range(unique), k=count - unique)]
    random.shuffle(numbers)
    return [
        {"task_id": f"r{round_number}-{n}", "candidate": f"x = {n}\n" * 50, "problem": "add", "suite": "tiny"}
        for n in numbers
    ]


async def run_clients(url: str, bodies: list[dict[str, Any]], clients: int) -> tuple[int, list[float]]:
    """(requests without a verdict, seconds per request)."""
    from harness.client import Client
    from harness.domain import HarnessError

    waiting, lost, seconds = list(bodies), 0, []
    with Client(url) as client:

        async def work() -> None:
            nonlocal lost
            while waiting:
                body, began_s = waiting.pop(), time.perf_counter()
                try:
                    await client.evaluate_async(**body)
                except HarnessError:
                    lost += 1
                seconds.append(time.perf_counter() - began_s)

        await asyncio.gather(*(work() for _ in range(clients)))
    return lost, seconds


def probe_status(url: str, stop: Any, found: Any) -> None:
    """`/status` of one task, again and again."""
    import http.client

    line = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    times = []
    while not stop.is_set():
        began_s = time.perf_counter()
        line.request("GET", "/status/probe")
        line.getresponse().read()
        times.append(time.perf_counter() - began_s)
        time.sleep(PROBE_EVERY_S)
    found.put(times)


def measure_overhead(url: str, evaluation_s: float, count: int = 100) -> list[float]:
    """Seconds beyond the evaluation, of one request at a time."""
    from harness.client import Client

    spent = []
    with Client(url) as client:
        for number in range(count):
            began_s = time.perf_counter()
            client.evaluate(task_id=f"overhead-{number}", candidate=f"x = {number}\n", problem="add", suite="tiny")
            spent.append(time.perf_counter() - began_s - evaluation_s)
    return spent


def measure_memory_mb(pid: int) -> float:
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def measure_cpu_s(pid: int) -> float:
    """User and system seconds of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def start_server(folder: Path, evaluation_ms: float) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, __file__, "--serve", str(folder), "--evaluation-ms", str(evaluation_ms)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, found[0]
    raise SystemExit(f"the server ended with {process.wait()}")


def run(options: argparse.Namespace, folder: Path) -> None:
    process, url = start_server(folder, options.evaluation_ms)
    try:
        overhead = measure_overhead(url, options.evaluation_ms / 1e3)
        median_ms = statistics.median(overhead) * 1e3
        print(f"overhead of a request: median {median_ms:.1f} ms, p99 {percentile(overhead, 0.99) * 1e3:.1f} ms")
        submit = {"task_id": "probe", "candidate": "x = 1\n", "problem": "add", "suite": "tiny"}
        request = urllib.request.Request(f"{url}/v1/evaluations?wait=60", json.dumps(submit).encode())
        request.add_header("Content-Type", "application/json")
        urllib.request.urlopen(request).close()
        print(f"/status without load: {describe(probe_for(url, QUIET_S))}")
        for number in range(options.rounds):
            print(f"memory before round {number + 1}: {measure_memory_mb(process.pid):.1f} MB")
            before_s = measure_cpu_s(process.pid)
            run_round(url, options, number)
            cpu_ms = (measure_cpu_s(process.pid) - before_s) * 1e3 / options.requests
            print(f"CPU time of the server: {cpu_ms:.1f} ms per request")
        print(f"memory at the end: {measure_memory_mb(process.pid):.1f} MB")
    finally:
        process.terminate()
        process.wait()


@contextmanager
def probing(url: str) -> Iterator[list[float]]:
    """The times of a prober beside the block, in the list when the block has ended."""
    context = multiprocessing.get_context("spawn")
    stop, found, times = context.Event(), context.Queue(), list[float]()
    prober = context.Process(target=probe_status, args=(url, stop, found))
    prober.start()
    yield times
    stop.set()
    times += found.get()
    prober.join()


def probe_for(url: str, seconds: float) -> list[float]:
    with probing(url) as times:
        time.sleep(seconds)
    return times


def describe(times: list[float]) -> str:
    return f"median {statistics.median(times) * 1e3:.1f} ms, p99 {percentile(times, 0.99) * 1e3:.1f} ms of {len(times)}"


def run_round(url: str, options: argparse.Namespace, number: int) -> None:
    bodies, began_s = make_bodies(options.requests, options.duplicates, number), time.perf_counter()
    with probing(url) as times:
        lost, seconds = asyncio.run(run_clients(url, bodies, options.clients))
        spent_s = time.perf_counter() - began_s
    print(
        f"{len(seconds)} requests of {options.clients} clients in {spent_s:.1f} s ({len(seconds) / spent_s:.0f}/s), "
        f"{lost} lost; /status: {describe(times)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--duplicates", type=float, default=0.3, help="share of requests")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--evaluation-ms", type=float, default=50.0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.evaluation_ms / 1e3)
        return
    random.seed(0)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


if __name__ == "__main__":
    main()
