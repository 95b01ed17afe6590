"""How close generation comes to the ideal: samples per second from a local server, against that server's own limit.

    python benchmarks/generation.py

Prints two rows. `no latency`: seconds for 400 samples after start-up, to be below 3. `1 s latency`: the share of the
ideal rate (concurrency / latency) that is reached with 64 requests under way, to be at least 90 %. The server is a
process of its own; every sample is stored as `harness generate` stores it.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

from harness.domain import Prompt, RunManifest
from harness.generate.providers.openai_compatible import EndpointSettings, open_endpoint
from harness.generate.sampler import Asker, Plan, SessionReport
from harness.pipeline.chains import Session, follow_all
from harness.report.terminal.search_progress import SearchProgress
from harness.store.runs import load_samples, write_manifest

CONCURRENCY = 64
PROGRAM = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n" + "    # a line of a kernel\n" * 120 + "    x = 1\n"
ANSWER = f"Some words first.\n\n```python\n{PROGRAM}```\n"


def main() -> None:
    print(f"{'case':<14}{'samples':>8}{'took':>10}{'ideal':>10}{'of ideal':>10}   target")
    took_s = measure(400, latency_s=0.0)
    print(f"{'no latency':<14}{400:>8}{took_s:>8.2f} s{'':>10}{'':>10}   below 3 s")
    samples = 10 * CONCURRENCY
    took_s, ideal_s = measure(samples, latency_s=1.0), samples / CONCURRENCY
    print(f"{'1 s latency':<14}{samples:>8}{took_s:>8.2f} s{ideal_s:>8.2f} s{ideal_s / took_s:>10.1%}   at least 90 %")


def measure(samples: int, *, latency_s: float) -> float:
    """Seconds from the first request to the last stored sample."""
    with tempfile.TemporaryDirectory() as folder, serve(latency_s) as base_url:
        plan = make_plan(Path(folder) / "run", samples)
        write_manifest(plan.run_dir, plan.manifest)
        took_s = asyncio.run(draw(plan, base_url))
        stored = len(load_samples(plan.run_dir))
    if stored != samples:
        raise SystemExit(f"expected {samples} stored samples, found {stored}")
    return took_s


async def draw(plan: Plan, base_url: str) -> float:
    provider = open_endpoint(EndpointSettings(base_url=base_url, api_key=None, concurrency=CONCURRENCY))
    report = SessionReport(run=plan.manifest.run, run_dir=plan.run_dir, planned=len(plan.list_keys()))
    read_clock = lambda: datetime.now(UTC).isoformat()  # noqa: E731
    asker = Asker(plan, provider, report, concurrency=CONCURRENCY, read_clock=read_clock)
    started = time.perf_counter()
    await follow_all(Session(plan=plan, asker=asker, progress=SearchProgress(plan.list_keys())))
    return time.perf_counter() - started


def make_plan(run_dir: Path, samples: int) -> Plan:
    problems = tuple(f"problem_{number}" for number in range(16))
    manifest = RunManifest(
        run=run_dir.name,
        suite="core",
        model="m",
        provider="openai",
        prompt="plain",
        language="cuda",
        samples=samples // len(problems),
        temperature=None,
        problems=problems,
        created_at="",
        harness_version="",
    )
    prompts = tuple(Prompt(name="plain", problem=name, language="cuda", text="word " * 1000) for name in problems)
    return Plan(run_dir=run_dir, manifest=manifest, prompts=prompts, samples=manifest.samples)


@contextmanager
def serve(latency_s: float) -> Iterator[str]:
    """A server in another process, so that its work is not ours."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=run_server, args=(theirs, latency_s), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        server.terminate()
        server.join()


def run_server(line: Connection, latency_s: float) -> None:
    asyncio.run(answer_forever(line, latency_s))


async def answer_forever(line: Connection, latency_s: float) -> None:
    body = json.dumps({"choices": [{"message": {"content": ANSWER}, "finish_reason": "stop"}]}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    line for line in request.lower().split(b"\r\n") if line.startswith(b"content-length:")
                ).split(b":")[1]
                await reader.readexactly(int(length))
                await asyncio.sleep(latency_s)
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    line.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    main()
