"""The folder of built libraries: how large it is, and what goes when it is too large.

    <two digits>/<key>/   library.so, log.txt, lane: one build, put there in one step
    locks/<key>           held while a build is made
    kits/<kind>-<key>/    what fast builds share
    build-*               a build under way, or what a killed one has left

A build is as old as its last use. What was used a short while ago may be in use still and is never removed.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.domain import UsageError

DEFAULT_LIMIT_BYTES = 20 * 1024**3
IN_USE_S = 900.0
LEFTOVER_S = 24 * 3600.0
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One build or one kit. `used_at` in seconds of the wall clock."""

    path: Path
    size_bytes: int
    used_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheContents:
    builds: tuple[Entry, ...]
    kits: tuple[Entry, ...]
    leftovers: tuple[Entry, ...]

    @property
    def size_bytes(self) -> int:
        return sum(entry.size_bytes for entry in (*self.builds, *self.kits, *self.leftovers))


def parse_size(text: str) -> int:
    """Bytes of "500M", "20G", "1.5GB" or a plain number. Raises ValueError with what was expected."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if not found:
        raise ValueError(f"a size is a number with K, M, G or T, such as 20G; found {text!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def read_cache_size(text: str | None) -> int:
    """How large the cache may be, in bytes, from a user's words; the default for None. Raises UsageError."""
    try:
        return DEFAULT_LIMIT_BYTES if text is None else parse_size(text)
    except ValueError as error:
        raise UsageError(f"--cache-size or HARNESS_CACHE_SIZE: {error}") from error


def read_cache(folder: Path) -> CacheContents:
    """What lies there now. What other processes remove meanwhile is left out."""
    return CacheContents(
        builds=tuple(_entries(folder, "[0-9a-f][0-9a-f]/*")),
        kits=tuple(_entries(folder, "kits/*")),
        leftovers=tuple(_entries(folder, "build-*")),
    )


def prune_cache(folder: Path, limit_bytes: int, *, now: float | None = None) -> tuple[int, int]:
    """Removes leftovers of killed builds, then builds and kits by their last use until the rest fits.

    Returns how many went and their bytes. What was used less than `IN_USE_S` ago stays, whatever the limit.
    """
    now = time.time() if now is None else now
    contents = read_cache(folder)
    gone = [entry for entry in contents.leftovers if now - entry.used_at > LEFTOVER_S]
    excess = contents.size_bytes - sum(entry.size_bytes for entry in gone) - limit_bytes
    for entry in sorted((*contents.builds, *contents.kits), key=lambda entry: entry.used_at):
        if excess <= 0 or now - entry.used_at < IN_USE_S:
            break
        gone.append(entry)
        excess -= entry.size_bytes
    for entry in gone:
        _remove(entry.path, folder)
    return len(gone), sum(entry.size_bytes for entry in gone)


def _remove(path: Path, folder: Path) -> None:
    """In two steps, so that a half-removed build is never found: another process may look for it right now."""
    grave = folder / f"build-removed-{path.name}"
    with suppress(OSError):
        path.rename(grave)
        shutil.rmtree(grave)


def _entries(folder: Path, pattern: str) -> Iterator[Entry]:
    for path in sorted(folder.glob(pattern)):
        with suppress(FileNotFoundError, NotADirectoryError):
            files = [file.stat() for file in path.rglob("*") if file.is_file()]
            yield Entry(path=path, size_bytes=sum(file.st_size for file in files), used_at=path.stat().st_mtime)
