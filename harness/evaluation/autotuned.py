"""Configurations that Triton's autotuning chose, from the files that it leaves beside its compiled kernels.

The candidate may write such files itself, so the notes are no evidence of anything.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from harness.domain import Finding

SUFFIX = ".autotune.json"
MOST_NOTES, MOST_CHARACTERS = 8, 200


def note_autotuned(files: Mapping[str, str]) -> tuple[Finding, ...]:
    """`files`: contents in base64, by path."""
    chosen = sorted(_describe_choices(files))
    return tuple(Finding(check="autotuned", severity="note", message=one) for one in chosen[:MOST_NOTES])


def _describe_choices(files: Mapping[str, str]) -> Iterator[str]:
    for path, content in files.items():
        if path.endswith(SUFFIX):
            try:
                choice = _describe_choice(json.loads(b64decode(content)))
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                continue  # not Triton's
            yield f"{PurePath(path).name.removesuffix(SUFFIX)} {choice}"[:MOST_CHARACTERS]


def _describe_choice(written: dict[str, Any]) -> str:
    timings = written["configs_timings"]
    config, _ = min(timings, key=lambda timing: timing[1])
    values = {**config["kwargs"], "num_warps": config["num_warps"], "num_stages": config["num_stages"]}
    chosen = ", ".join(f"{name} {value}" for name, value in values.items())
    return f"for {tuple(written['key'])}: {chosen}, of {len(timings)} configurations"
