"""Reads the baselines that a command names."""

from __future__ import annotations

import ast
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import get_args

from harness.domain import LIBRARY_CLASS, Baseline, TimedBaseline, UsageError
from harness.domain.files import explain_failure, read_python
from harness.syntax import parse_python

ENTRIES = ("ModelNew", "Model")  # of a user's module, the first that it defines
_KNOWN = get_args(Baseline)


def read_baselines(names: str) -> tuple[TimedBaseline, ...]:
    """`names` are separated by commas. Raises UsageError."""
    found = tuple(_read_baseline(name.strip()) for name in names.split(","))
    repeated = [one.name for at, one in enumerate(found) if one in found[:at]]
    if repeated:
        raise UsageError(f"--baseline names {repeated[0]} twice")
    return found


def _read_baseline(name: str) -> TimedBaseline:
    if name in _KNOWN:
        return TimedBaseline(name=name, entry=LIBRARY_CLASS if name == "library" else "Model")
    path = Path(name)
    if path.suffix != ".py":
        near = get_close_matches(name, _KNOWN, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(_KNOWN)
        raise UsageError(f"unknown baseline {name!r}; {hint}choose among {known}, or name a Python file")
    try:
        source = read_python(path)
        classes = {one.name for one in parse_python(source).body if isinstance(one, ast.ClassDef)}
    except (OSError, ValueError, SyntaxError) as error:
        raise UsageError(f"cannot read the baseline {path}: {explain_failure(error)}") from error
    entry = next((one for one in ENTRIES if one in classes), None)
    if entry is None:
        raise UsageError(f"the baseline {path} defines no class {' or '.join(ENTRIES)}")
    digest = sha256(source.encode()).hexdigest()[:8]
    return TimedBaseline(name=f"{path.stem}@{digest}", entry=entry, source=source)
