"""Copies builds from one machine's cache to another's. Both ends are trusted."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness.builder.cache import find_entry


def pack_builds(cache: Path, keys: Iterable[str]) -> dict[str, bytes]:
    """Return one archive per key, without builds that the cache does not keep."""
    return {key: _pack(entry) for key in keys if (entry := find_entry(cache, key)).is_dir()}


def unpack_builds(cache: Path, packed: dict[str, bytes]) -> None:
    for key, archive in packed.items():
        entry = find_entry(cache, key)
        if entry.is_dir():
            continue
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=cache, ignore_cleanup_errors=True) as work:
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(f"{work}/entry", filter="data")
            with suppress(OSError):  # another process was faster
                Path(work, "entry").rename(entry)


def _pack(entry: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as files:
        for path in sorted(entry.iterdir()):
            files.add(path, path.name)
    return buffer.getvalue()
