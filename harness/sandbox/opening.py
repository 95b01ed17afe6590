"""Opens workers for a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from harness.protocol.tensor_layout import MOST_KEPT
from harness.sandbox.arena_layout import Footprint
from harness.sandbox.build_requests import AnswerBuild
from harness.sandbox.devices import Device, SharedArena
from harness.sandbox.model_session import ModelSession
from harness.sandbox.worker_client import Mode, WorkerClient
from harness.sandbox.worker_process import TimeLimits, WorkerProcess

StartWorker = Callable[[], WorkerProcess]


@contextmanager
def open_session(
    *,
    start_worker: StartWorker,
    device: Device,
    footprint: Footprint,
    source: str,
    entry: str,
    answer_build: AnswerBuild | None,
    limits: TimeLimits,
    threads: int,
    allow_tf32: bool,
    mode: Mode = "plain",
    keeps_on_host: bool = False,
    compiled: Mapping[str, str] | None = None,
) -> Iterator[ModelSession]:
    client_opened = open_client(
        start_worker=start_worker, device=device, arena_bytes=footprint.arena_bytes, source=source, entry=entry,
        answer_build=answer_build, limits=limits, threads=threads, allow_tf32=allow_tf32, mode=mode,
        most_kept=footprint.most_kept, compiled=compiled,
    )  # fmt: skip
    with (
        client_opened as (client, arena),
        device.open_session(client, arena, footprint, limits, keeps_on_host=keeps_on_host) as session,
    ):
        yield session


@contextmanager
def open_client(
    *,
    start_worker: StartWorker,
    device: Device,
    arena_bytes: int,
    source: str,
    entry: str,
    answer_build: AnswerBuild | None,
    limits: TimeLimits,
    threads: int,
    allow_tf32: bool,
    mode: Mode = "plain",
    most_kept: int = MOST_KEPT,
    compiled: Mapping[str, str] | None = None,
) -> Iterator[tuple[WorkerClient, SharedArena]]:
    """`answer_build` None marks trusted code."""
    with device.allocate(arena_bytes) as arena, start_worker() as worker:
        client = WorkerClient(worker, arena, answer_build)
        client.start(
            source,
            entry,
            device=str(device.torch_device),
            threads=threads,
            allow_tf32=allow_tf32,
            timeout_s=limits.load_s,
            mode=mode,
            emulates=device.describe_emulation(threads, limits.call_s),
            most_kept=most_kept,
            compiled=compiled,
        )
        yield client, arena
