"""Stores imported evaluation results and baseline times of other evaluators verbatim.

    generated/<run>/claims.json     {"format": "kernelbench", "level": 1, "results": {...}, "baseline": {...}}

They never enter `results/`, which holds only measurements of this harness.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.domain import StoreError
from harness.domain.files import explain_failure, replace_text

CLAIMS = "claims.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClaims:
    format: str
    level: int
    results: dict[str, Any] = field(default_factory=dict)
    baseline: dict[str, Any] = field(default_factory=dict)


def write_claims(run_dir: Path, claims: StoredClaims) -> None:
    """Replace earlier ones. Raises StoreError."""
    try:
        replace_text(run_dir / CLAIMS, json.dumps(asdict(claims), indent=1) + "\n")
    except OSError as error:
        raise StoreError(f"cannot write {run_dir / CLAIMS}: {explain_failure(error)}") from error


def read_claims(run_dir: Path) -> StoredClaims | None:
    """Return None without a file. Raises StoreError for a damaged one."""
    path = run_dir / CLAIMS
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return StoredClaims(**record)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error}): import the run again, or remove the file") from error
