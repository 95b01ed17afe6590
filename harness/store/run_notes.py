"""Reads and writes a run's note and tags, which its user gives."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.domain import StoreError
from harness.domain.files import explain_failure, raising, replace_text

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
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return RunNotes(note=str(record["note"]), tags=tuple(map(str, record["tags"])))
    except FileNotFoundError:
        return RunNotes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {explain_failure(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error!r}): correct or remove it") from error


def write_notes(run_dir: Path, notes: RunNotes) -> None:
    """Raises StoreError."""
    path = run_dir / NOTES
    with raising(StoreError, f"write {path}"):
        replace_text(path, json.dumps(asdict(notes), indent=1) + "\n")
