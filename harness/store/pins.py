"""Reads pin files: the stored evaluations that `harness regress` re-evaluates.

Each line has an evaluation's number, or `run/problem/sample`, with `/turn-N` for a repair turn; `#` starts a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.domain import SampleKey, UsageError
from harness.domain.files import explain_failure

_SAMPLE = re.compile(r"(?P<run>[^/\s]+)/(?P<problem>[^/\s]+)/(?P<sample>\d{1,9})(?:/turn-(?P<turn>\d{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    line: int
    evaluation: int | None = None
    sample: SampleKey | None = None

    def __str__(self) -> str:
        return str(self.evaluation if self.sample is None else self.sample)


def read_pins(path: Path) -> tuple[Pin, ...]:
    """Raises UsageError for an unreadable or empty file and an invalid line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the pins {path}: {explain_failure(error)}") from error
    stripped = [(number, line.split("#", 1)[0].strip()) for number, line in enumerate(lines, start=1)]
    pins = tuple(_read_pin(text, number, path) for number, text in stripped if text)
    if not pins:
        raise UsageError(f"{path} contains no pins: write one evaluation per line, such as 12 or my-run/softmax/0")
    return pins


def _read_pin(text: str, line: int, path: Path) -> Pin:
    if re.fullmatch(r"\d{1,15}", text):
        return Pin(line=line, evaluation=int(text))
    match = _SAMPLE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{path}, line {line}: expected the number of an evaluation or run/problem/sample, found {text!r}"
        )
    key = SampleKey(
        run=match["run"], problem=match["problem"], sample=int(match["sample"]), turn=int(match["turn"] or 0)
    )
    return Pin(line=line, sample=key)
