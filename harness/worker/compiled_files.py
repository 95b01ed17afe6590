"""Passes the files that compilers (Triton, Inductor) write inside a worker to later workers of the same program."""

from __future__ import annotations

import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDERS = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor"}
MOST_BYTES = 24 << 20  # more is compiled again


def place(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        if not path.resolve().is_relative_to(root.resolve()):
            raise ValueError(f"{name} does not lie in the folder of compiled files")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b64decode(content))
    for variable, folder in FOLDERS.items():
        os.environ[variable] = str(root / folder)
    inductor: Any = sys.modules.get("torch._inductor.codecache")
    if inductor is not None:  # imported by the forkserver, whose temporary folder may be read-only here
        headers = root.parent / "precompiled_headers"
        inductor._HEADER_DIR, inductor._HEADER_LOCK_DIR = str(headers), str(headers / "locks")


def read(root: Path) -> dict[str, str]:
    """Return contents in base64 by path; empty if there are too many files."""
    paths = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in paths) > MOST_BYTES:
        return {}
    return {str(path.relative_to(root)): b64encode(path.read_bytes()).decode() for path in paths}
