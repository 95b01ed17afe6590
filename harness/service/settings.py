from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.domain import Fidelity

ANONYMOUS = "anonymous"  # client name without tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """`tokens`: client name per token; empty: no authentication. `accepts_references` False: only problems of suites;
    `trusts_references`: executes references by text without a sandbox. `max_bodies_bytes`: total of requests that are
    being answered; `max_message_bytes`: of a WebSocket's message. `head_s`, `body_s`: limits for receiving the head of
    a request and its body."""

    folder: Path
    fidelity: Fidelity = "full"
    tokens: dict[str, str] = field(default_factory=dict, repr=False)
    problems_dir: Path | None = None
    known_solutions: Path | None = None
    accepts_references: bool = True
    trusts_references: bool = False
    max_body_bytes: int = 4 * 2**20
    max_bodies_bytes: int = 128 * 2**20
    max_message_bytes: int = 2**20
    max_sessions: int = 256  # WebSockets
    max_connections: int = 2048
    head_s: float = 10.0
    body_s: float = 60.0
    max_queued: int = 10_000
    max_per_client: int = 5_000  # unfinished tasks
    keep_s: float = 7 * 86_400.0  # finished tasks
    retry_after_s: int = 5
