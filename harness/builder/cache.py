"""Size and pruning of the build cache.

    <two digits>/<key>/   library.so, device_code, log.txt, lane (the strategy): one build, moved here atomically
    locks/<key>           held during a build
    kits/<kind>-<key>/    prebuilt headers
    driver-<key>/         the driver library of workers, see harness.sandbox.gpu.driver_library
    build-*               running build, or leftovers of a killed one

Recently used entries may be in use and are never removed.
"""

import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from harness.domain import UsageError

DEVICE_CODE = "device_code"  # digests of the fat binaries that nvcc made of the sources, one a line
KITS, DRIVERS = "kits", "driver-*"
READY = "ready"  # a file in complete prebuilt headers
DEFAULT_LIMIT_BYTES = 20 * 1024**3
IN_USE_S = 900.0
LEFTOVER_S = 24 * 3600.0
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    path: Path
    size_bytes: int
    used_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheContents:
    builds: tuple[Entry, ...]
    prebuilt: tuple[Entry, ...]
    leftovers: tuple[Entry, ...]

    @property
    def size_bytes(self) -> int:
        return sum(entry.size_bytes for entry in (*self.builds, *self.prebuilt, *self.leftovers))


def default_cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harness" / "builds"


def find_machine_folder(cache: Path | None) -> Path:
    return (cache or default_cache_folder()) / "machine"


def find_entry(folder: Path, key: str) -> Path:
    return folder / key[:2] / key


def digest_code(image: bytes) -> str:
    return sha256(image).hexdigest()


def list_device_code(library: str) -> frozenset[str]:
    """Return the digests of what nvcc made of its sources: the library itself may hold any bytes. Raises OSError."""
    return frozenset(Path(library).with_name(DEVICE_CODE).read_text(encoding="utf-8").split())


def parse_size(text: str) -> int:
    """Return the bytes of "500M", "20G", "1.5GB" or a plain number. Raises ValueError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if not found:
        raise ValueError(f"expected a size such as 20G (suffix K, M, G or T), got {text!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def read_cache_size(text: str | None) -> int:
    """`text` None selects the default. Raises UsageError."""
    try:
        return DEFAULT_LIMIT_BYTES if text is None else parse_size(text)
    except ValueError as error:
        raise UsageError(f"--cache-size or HARNESS_CACHE_SIZE: {error}") from error


def read_cache(folder: Path) -> CacheContents:
    return CacheContents(
        builds=tuple(_entries(folder, "[0-9a-f][0-9a-f]/*")),
        prebuilt=tuple(_entries(folder, "kits/*")),
        leftovers=tuple(_entries(folder, "build-*")),
    )


def prune_cache(folder: Path, limit_bytes: int) -> tuple[int, int]:
    """Remove leftovers of killed builds, then the least recently used entries. Return their number and bytes.

    Entries used within `IN_USE_S` stay, by the clock of the file system, which may differ from this machine's.
    """
    if not folder.is_dir():
        return 0, 0
    os.utime(folder)
    now = folder.stat().st_mtime
    contents = read_cache(folder)
    gone = [entry for entry in contents.leftovers if now - entry.used_at > LEFTOVER_S]
    excess = contents.size_bytes - sum(entry.size_bytes for entry in gone) - limit_bytes
    for entry in sorted((*contents.builds, *contents.prebuilt), key=lambda entry: entry.used_at):
        if excess <= 0 or now - entry.used_at < IN_USE_S:
            break
        gone.append(entry)
        excess -= entry.size_bytes
    for entry in gone:
        _remove(entry.path, folder)
    return len(gone), sum(entry.size_bytes for entry in gone)


def _remove(path: Path, folder: Path) -> None:
    """Rename first, so that other processes never see a half-removed build."""
    grave = folder / f"build-removed-{path.name}"
    with suppress(OSError):
        path.rename(grave)
        shutil.rmtree(grave)


def _entries(folder: Path, pattern: str) -> Iterator[Entry]:
    for path in sorted(folder.glob(pattern)):
        with suppress(FileNotFoundError, NotADirectoryError):
            files = [file.stat() for file in path.rglob("*") if file.is_file()]
            yield Entry(path=path, size_bytes=sum(file.st_size for file in files), used_at=path.stat().st_mtime)


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
            with ZipFile(io.BytesIO(archive)) as files:
                files.extractall(f"{work}/entry")
            with suppress(OSError):  # another process was faster
                Path(work, "entry").rename(entry)


def _pack(entry: Path) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, mode="w", strict_timestamps=False) as files:
        for path in sorted(entry.rglob("*")):
            files.write(path, path.relative_to(entry))
    return buffer.getvalue()
