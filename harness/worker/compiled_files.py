"""Imports compilers (Triton, Inductor) into the forkserver, since importing them in each worker would take seconds, and
passes the files that they write inside a worker to later workers of the same program.
"""

import gc
import importlib
import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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


WARM_POOL = "TORCH_WARM_POOL"


def preload_compilers(names: Sequence[str]) -> None:
    """Import modules, then call each `module:function` whose module is imported. Ignore failures: the program that uses
    the compiler fails again with the reason."""
    with _without_pool():
        for name in names:
            if ":" not in name:
                with suppress(Exception):
                    importlib.import_module(name)
    for name in names:
        module, _, attribute = name.partition(":")
        function = getattr(sys.modules.get(module), attribute, None) if attribute else None
        if function is not None:
            with suppress(Exception):
                function()
    gc.freeze()


@contextmanager
def _without_pool() -> Iterator[None]:
    """Older torch starts compiling processes when Inductor is imported. All workers would share them, unisolated."""
    usual = os.environ.get(WARM_POOL)
    os.environ[WARM_POOL] = "0"
    try:
        yield
    finally:
        del os.environ[WARM_POOL]
        if usual is not None:
            os.environ[WARM_POOL] = usual
