"""Lists function names in a built library, to recognise candidate kernels."""

from __future__ import annotations

import shutil
import subprocess

TIMEOUT_S = 30.0


def list_functions(library: str) -> frozenset[str]:
    """Names have the form of `plain_signature`. Empty without `nm`."""
    nm = shutil.which("nm")
    if nm is None:
        return frozenset()
    try:
        found = subprocess.run(
            [nm, "--demangle", "--defined-only", library], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return frozenset()
    fields = (line.split(maxsplit=2) for line in found.stdout.splitlines())
    return frozenset(plain_signature(parts[2]) for parts in fields if len(parts) == 3 and parts[1] in "tTwW")


def plain_signature(name: str) -> str:
    """Drop `void` and spaces, as in `f<float>(floatconst*)`."""
    return name.removeprefix("void ").replace(" ", "")
