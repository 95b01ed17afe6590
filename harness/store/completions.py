"""Reads prompts and completions in `generated/` for the report; missing or damaged files read as None."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain import Completion, StoreError, UsageError
from harness.store.columns import ResultRow
from harness.store.runs import (
    COMPLETION_REST,
    PROMPT,
    PROVENANCE,
    list_keys,
    list_runs,
    locate_run,
    locate_sample,
    read_completion,
    read_model,
)

_TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Tokens, as counted by the endpoint, and seconds of one completion; None if unknown."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_s: float | None = None


UNKNOWN_COST = Spent()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOrigin:
    """The turns that a turn continues; see `harness.search.strategy.Ask`. An imported `solution` has a name."""

    parent: int | None = None
    partner: int | None = None
    solution: str = ""


def has_run(generated_dir: Path, run: str) -> bool:
    try:
        return locate_run(generated_dir, run).is_dir()
    except (UsageError, OSError):
        return False


def locate_answer(generated_dir: Path | None, row: ResultRow) -> Path | None:
    if generated_dir is None or not row.run:
        return None
    try:
        return locate_sample(locate_run(generated_dir, row.run), row.key)
    except UsageError:
        return None


def read_spent(folder: Path | None) -> Spent:
    """Read only the end of the file: the reasoning before it may be long."""
    if folder is None:
        return UNKNOWN_COST
    try:
        record = _read_end(folder / COMPLETION_REST)
        usage = record.get("usage") or {}
        counts = {name: _read_count(usage.get(name)) for name in Spent.__slots__ if name != "latency_s"}
        latency_s = record.get("latency_s")
        return Spent(**counts, latency_s=float(latency_s) if isinstance(latency_s, int | float) else None)
    except (OSError, ValueError, AttributeError, TypeError):
        return UNKNOWN_COST


def list_spent(generated_dir: Path, model: str) -> Iterator[tuple[str, Spent]]:
    """Yield (problem, spent) for every answer of the model's runs."""
    for run in list_runs(generated_dir):
        run_dir = generated_dir / run
        if _read_model(run_dir) == model:
            yield from ((key.problem, read_spent(locate_sample(run_dir, key))) for key in list_keys(run_dir))


def _read_model(run_dir: Path) -> str | None:
    try:
        return read_model(run_dir, "")
    except StoreError:
        return None


def _read_end(path: Path) -> dict[str, Any]:
    """Return the fields after the reasoning. JSON escapes line breaks, so a field name matches only on its own line."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        mark = tail.find(b'\n "finish_reason":')
        if mark < 0:
            file.seek(0)
            return dict(json.loads(file.read()))
    return dict(json.loads(b"{" + tail[mark:]))


def _read_count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**53 else None


def read_prompt(folder: Path | None) -> str | None:
    try:
        return None if folder is None else (folder / PROMPT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def read_origin(folder: Path | None, *, turn: int) -> TurnOrigin:
    """Without a record, return the previous turn."""
    before = turn - 1 if turn else None
    try:
        record = {} if folder is None else json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        parent, partner, solution = record.get("parent", before), record.get("partner"), record.get("solution")
    except (OSError, ValueError, AttributeError):
        return TurnOrigin(parent=before)
    return TurnOrigin(
        parent=parent if parent is None or isinstance(parent, int) else before,
        partner=partner if isinstance(partner, int) else None,
        solution=solution if isinstance(solution, str) else "",
    )


def read_answer(folder: Path | None) -> Completion | None:
    try:
        return None if folder is None else read_completion(folder)
    except (StoreError, UnicodeDecodeError, TypeError, AttributeError):
        return None
