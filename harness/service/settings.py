from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.domain import Fidelity

ANONYMOUS = "anonymous"  # client name without tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """`tokens`: client name per bearer token; empty: no authentication. `accepts_references` False: only problems of
    suites, since a reference by text is executed as trusted code."""

    folder: Path
    fidelity: Fidelity = "full"
    tokens: dict[str, str] = field(default_factory=dict, repr=False)
    problems_dir: Path | None = None
    known_solutions: Path | None = None
    accepts_references: bool = True
    max_body_bytes: int = 4 * 2**20
    max_queued: int = 10_000
    max_per_client: int = 5_000  # unfinished tasks
    keep_s: float = 7 * 86_400.0  # finished tasks
    retry_after_s: int = 5
