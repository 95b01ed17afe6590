"""Caches measurements of this machine in JSON files of named values. Safe for concurrent writers."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.domain import StoreError
from harness.domain.files import explain_failure, raising, replace_text


def read_record(path: Path) -> dict[str, Any]:
    """Return {} without a file. Raises StoreError for a damaged one."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {explain_failure(error)}") from error
    try:
        record = json.loads(text)
    except ValueError as error:
        raise StoreError(f"{path} is damaged: {error}; remove it, it will be measured again") from error
    if not isinstance(record, dict):
        raise StoreError(f"{path} is damaged: expected an object; remove it, it will be measured again")
    return record


def add_to_record(path: Path, values: Mapping[str, Any]) -> None:
    with raising(StoreError, f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            merged = {**read_record(path), **values}
            replace_text(path, json.dumps(merged, indent=1, sort_keys=True))
