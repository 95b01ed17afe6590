"""Compiles kernels again, each in a sandboxed process that never runs their program."""

from base64 import b64decode
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from harness.domain import HarnessError, WorkerLost, WorkerTimeout
from harness.protocol.channel import WorkerRequest
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.worker_process import WorkerLimits

COMPILE_S = 60.0  # for each
MOST_COMPILED = 20  # of those that are not known
AT_A_TIME = 8


def compile_again(
    forkserver: Forkserver, cores: Collection[int], known: dict[str, bytes], descriptions: Sequence[str]
) -> list[bytes]:
    """Return the code for each description, which a worker gave. It is empty if that failed. `known` is extended."""
    new = [one for one in dict.fromkeys(descriptions) if one not in known][:MOST_COMPILED]
    with ThreadPoolExecutor(min(AT_A_TIME, len(cores))) as pool:
        known |= zip(new, pool.map(partial(_compile, forkserver, sorted(cores)), new), strict=True)
    return [known.get(one, b"") for one in descriptions]


def _compile(forkserver: Forkserver, cores: list[int], description: str) -> bytes:
    with suppress(HarnessError, WorkerLost, WorkerTimeout, OSError, ValueError):
        worker = forkserver.spawn(WorkerLimits(memory_bytes=None))
        try:
            worker.line.send({"kind": WorkerRequest.COMPILE_AGAIN, "cores": cores, "description": description})
            answer, _ = worker.line.receive(timeout_s=COMPILE_S)
            return b64decode(str(answer.get("code", "")))
        finally:
            worker.end()
    return b""
