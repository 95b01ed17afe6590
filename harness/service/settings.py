from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from harness.domain import Fidelity
from harness.domain.options import option
from harness.pipeline.options import EvaluateOptions

ANONYMOUS = "anonymous"  # client name without tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """`tokens` maps tokens to client names; empty disables authentication. Without `accepts_references` only problems
    of suites are allowed; `trusts_references` executes references without a sandbox. `max_bodies_bytes` limits all open
    requests, `max_message_bytes` a WebSocket message, `head_s` and `body_s` a request.
    """

    title: ClassVar[str] = "Service"

    accepts_references: bool = option(
        True, "Accept references by text, which are executed in a sandbox for each client.", key="references"
    )
    trusts_references: bool = option(
        False,
        "Execute them without it: clients can then read tokens, tasks and files of this machine.",
        key="trusted_clients",
    )
    max_body_bytes: int = option(
        4 * 2**20,
        "Limit of a request's body.",
        key="max_body",
        text=4096,
        parse=lambda kib: kib * 1024,
        min=1,
        metavar="KIB",
    )
    max_queued: int = option(10_000, "Limit of queued tasks.", min=1, metavar="N")
    max_per_client: int = option(5_000, "Limit of one client's unfinished tasks.", min=1, metavar="N")
    keep_s: float = option(
        7 * 86_400.0,
        "Delete finished tasks after.",
        key="keep_hours",
        text=168.0,
        parse=lambda hours: hours * 3600,
        min=0.01,
        metavar="HOURS",
    )
    folder: Path = option(
        Path("service"), "Folder of the queue and its verdicts.", key="queue_dir", panel="Paths", metavar="DIR"
    )
    fidelity: Fidelity = option("full")
    problems_dir: Path | None = option(None)
    known_solutions: Path | None = option(None)
    tokens: dict[str, str] = field(default_factory=dict, repr=False)
    max_bodies_bytes: int = 128 * 2**20
    max_message_bytes: int = 2**20
    max_sessions: int = 256  # WebSockets
    max_connections: int = 2048
    head_s: float = 10.0
    body_s: float = 60.0
    retry_after_s: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """`budget` is the maximum number of verdicts for one agent."""

    title: ClassVar[str] = "Agent"

    run: str = option("agent", "Run of the stored submissions; one server at a time.", metavar="NAME")
    model: str = option("agent", "Name of the agent in the leaderboard.", metavar="NAME")
    budget: int | None = option(None, "Evaluations at most.", key="budget_evaluations", min=1, metavar="N")
    options: EvaluateOptions = field(default_factory=EvaluateOptions)
