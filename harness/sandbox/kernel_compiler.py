"""Compiles kernels again in a sandboxed process that never runs their program."""

from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress

from harness.domain import HarnessError, WorkerLost, WorkerTimeout
from harness.protocol.channel import WorkerRequest
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.worker_process import WorkerLimits

COMPILE_S = 60.0  # for each
MOST_COMPILED = 20  # of a program


def compile_again(forkserver: Forkserver, descriptions: Sequence[str]) -> list[bytes]:
    """Return the code for each description, which a worker gave. It is empty if that failed."""
    found = [b""] * len(descriptions)
    with suppress(HarnessError, WorkerLost, WorkerTimeout, OSError, ValueError):
        worker = forkserver.spawn(WorkerLimits(memory_bytes=None))
        try:
            for at, description in enumerate(descriptions[:MOST_COMPILED]):
                worker.line.send({"kind": WorkerRequest.COMPILE_AGAIN, "description": description})
                answer, _ = worker.line.receive(timeout_s=COMPILE_S)
                found[at] = b64decode(str(answer.get("code", "")))
        finally:
            worker.end()
    return found
