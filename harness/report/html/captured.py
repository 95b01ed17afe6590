"""Makes the data of the section about a user's model: where its time goes, what was tried, and what it brought."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.domain import Outcome
from harness.report.html.encoding import clean
from harness.report.terminal.capture import LISTED_SHARE
from harness.store.columns import ResultRow
from harness.store.runs import check_name

_FACTS = ("model", "hardware", "device", "wall_us")
_NUMBERS = ("kind", "calls", "share", "time_us", "peak_fraction", "gain_limit", "bound", "problem", "reason")


def list_captured(rows: Sequence[ResultRow], captured_dir: Path | None) -> list[dict[str, Any]]:
    """Return the captured suites among the results' suites, in the order of their names."""
    found: list[dict[str, Any]] = []
    if captured_dir is None:
        return found
    for suite in sorted({row.suite for row in rows}):
        with suppress(OSError, ValueError, KeyError, TypeError):  # no captured suite, or of another version
            folder = captured_dir / check_name("suite", suite)
            captured = json.loads((folder / "capture.json").read_text(encoding="utf-8"))
            tried = _count_tried(row for row in rows if row.suite == suite)
            applied = folder / "applied.json"
            record = json.loads(applied.read_text(encoding="utf-8")) if applied.exists() else None
            kernels = {one["problem"]: one for one in record["kernels"]} if record else {}
            groups = [
                {name: group[name] for name in _NUMBERS}
                | {"tried": tried.get(group["problem"]), "kernel": kernels.get(group["problem"])}
                for group in captured["groups"]
                if group["share"] >= LISTED_SHARE or group["problem"]
            ]
            facts = {name: captured[name] for name in _FACTS}
            found.append(clean(facts | {"suite": suite, "groups": groups, "applied": record}))
    return found


def _count_tried(rows: Iterable[ResultRow]) -> dict[str, dict[str, Any]]:
    """Count candidates and correct ones of each problem, with the best speedup."""
    tried: dict[str, dict[str, Any]] = {}
    for row in rows:
        counts = tried.setdefault(row.problem, {"candidates": 0, "correct": 0, "best": None})
        counts["candidates"] += 1
        counts["correct"] += row.outcome == Outcome.CORRECT
        if row.speedup is not None:
            counts["best"] = max(row.speedup, counts["best"] or 0.0)
    return tried
