"""Lists and demangles names of functions, to recognise candidate kernels. The names are the candidate's."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

TIMEOUT_S = 30.0
MOST_KIB, MOST_BYTES = 4 << 20, 64 << 20  # of memory, and of the output: a short name may demangle to gigabytes
_LIMITED = 'ulimit -v "$0"; most=$1; shift; "$@" | head -c "$most"'
_MANGLED = re.compile(r"_Z[\w.$]+")


def list_functions(library: str) -> frozenset[str]:
    """Names have the form of `plain_signature`. Empty without `nm`."""
    return _list_functions(library, Path(library).stat().st_mtime_ns)


@lru_cache(maxsize=100)
def _list_functions(library: str, _changed_ns: int) -> frozenset[str]:
    found = _run_limited("nm", "--demangle", "--defined-only", library)
    fields = (line.split(maxsplit=2) for line in found.splitlines())
    return frozenset(plain_signature(parts[2]) for parts in fields if len(parts) == 3 and parts[1] in "tTwW")


def demangle(names: Sequence[str]) -> list[str]:
    """Names that are not mangled stay, as of Triton's kernels; all do without `c++filt`, or above a size."""
    mangled = list(dict.fromkeys(filter(_MANGLED.fullmatch, names)))
    found = _run_limited("c++filt", given="".join(f"{name}\n" for name in mangled)) if mangled else ""
    *plain, rest = found.split("\n")
    known = dict(zip(mangled, plain, strict=True)) if len(plain) == len(mangled) and not rest else {}
    return [known.get(name, name) for name in names]


def _run_limited(program: str, *arguments: str, given: str = "") -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    command = ["sh", "-c", _LIMITED, str(MOST_KIB), str(MOST_BYTES), path, *arguments]
    try:
        finished = subprocess.run(
            command, input=given, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
        )
    except (subprocess.SubprocessError, OSError):
        return ""
    return finished.stdout


def plain_signature(name: str) -> str:
    """Drop `void` and spaces, as in `f<float>(floatconst*)`."""
    return name.removeprefix("void ").replace(" ", "")
