"""Caches measurements of this machine in JSON files of named values. Safe for concurrent writers."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.domain import StoreError
from harness.domain.files import raising, read_json_record, replace_text


def read_record(path: Path) -> dict[str, Any]:
    """Return {} without a file. Raises StoreError for a damaged one."""
    return read_json_record(path, "remove it, it will be measured again") or {}


def add_to_record(path: Path, values: Mapping[str, Any]) -> None:
    with raising(StoreError, f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            merged = {**read_record(path), **values}
            replace_text(path, json.dumps(merged, indent=1, sort_keys=True))
