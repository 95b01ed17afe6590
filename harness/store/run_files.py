"""Reads and writes files of `generated/`, which survive a crash, with notes and tags. Raises StoreError."""

import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.domain import StoreError
from harness.domain.files import raising, read_json_record, replace_text, replacing

REMEDY = ". Earlier samples are complete; free disk space or correct the permissions, then run the same command again"


def store_errors(path: Path) -> AbstractContextManager[None]:
    return raising(StoreError, f"write {path}", REMEDY)


def read_bytes(path: Path) -> bytes:
    with raising(StoreError, f"read {path}"):
        return path.read_bytes()


def read_json(path: Path) -> dict[str, Any]:
    record = read_json_record(path, "restore it or remove the sample's folder")
    if record is None:
        raise StoreError(f"there is no {path}")
    return record


def to_json(record: dict[str, Any] | list[dict[str, Any]]) -> bytes:
    return (json.dumps(record, indent=1) + "\n").encode()


def replace_file(path: Path, content: bytes) -> None:
    with replacing(path) as partial:
        write_durably(partial, content)
    sync_folder(path.parent)


def write_durably(path: Path, content: bytes) -> None:
    """Use `os.write`: a file object's additional system calls cost more than the write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
