"""Reads and writes a run's note and tags, which its user gives."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.domain import StoreError
from harness.domain.files import raising, read_json_record, replace_text

NOTES = "notes.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNotes:
    note: str = ""
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        tags = f"[{', '.join(self.tags)}]" if self.tags else ""
        return " ".join(filter(None, (tags, self.note)))


def read_notes(run_dir: Path) -> RunNotes:
    """Raises StoreError."""
    path = run_dir / NOTES
    remedy = "correct or remove it"
    record = read_json_record(path, remedy) or {"note": "", "tags": ()}
    try:
        return RunNotes(note=str(record["note"]), tags=tuple(map(str, record["tags"])))
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error!r}): {remedy}") from error


def write_notes(run_dir: Path, notes: RunNotes) -> None:
    """Raises StoreError."""
    path = run_dir / NOTES
    with raising(StoreError, f"write {path}"):
        replace_text(path, json.dumps(asdict(notes), indent=1) + "\n")
