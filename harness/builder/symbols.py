"""Which functions a built library holds, by their full names: how a kernel is known to be a candidate's own."""

from __future__ import annotations

import shutil
import subprocess

TIMEOUT_S = 30.0


def list_functions(library: str) -> frozenset[str]:
    """Demangled names with parameters, as `plain_signature` gives them. The host side of a kernel has the kernel's own
    name. Empty where the machine has no `nm` or it cannot read the file."""
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
    """`void f<float>(float const*)` without the type of its result and without spaces."""
    return name.removeprefix("void ").replace(" ", "")
