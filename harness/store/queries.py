"""Filters and flat rows of stored evaluations, and their SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import NamedTuple, get_args

from harness.domain import (
    INEXACT,
    UNTIMED,
    Clock,
    Language,
    Outcome,
    TimingVerdict,
    UsageError,
    WithoutOwn,
    WorkloadName,
)
from harness.store.filters import Kind, compile_condition, list_compared


class ResultRow(NamedTuple):
    """One evaluation as a flat row, in the order of the CSV file (append new columns). A NamedTuple without JSON
    decoding, because listings hold 100,000 rows.

    `candidate`: digest, "" without code. `speedup`: None unless correct and confirmed. `own_share`: share of a call's
    time in the candidate's own compiled code; `without_own`: effect on the outputs of disabling it. `peak_fraction`:
    share of the device's peak. `certificate`: digest of the valid red-team certificate or "". `noise_floor`: largest
    deviation from 1 of a program's speedup over itself. `worst_speedup`: of the slowest case; `generalisation_gap`:
    speedup of the known cases / that of the secret ones; None without such cases. `dtype`: chosen for inputs and
    weights; "" as in the problem's file. `rival_turn`: of the program that was the best before, `over_rival`: the
    speedup over it in A/B pairs, `over_rival_low` its lower end. `clock`: of the speedup, see
    `harness.domain.evaluation.Timing`; None: not timed, or not recorded (whole calls).
    """

    id: int
    run: str
    problem: str
    sample: int
    turn: int
    suite: str
    model: str
    prompt: str
    language: str
    device: str
    workload: str
    outcome: str
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    verdict: str | None
    baseline: str
    baseline_us: float | None
    candidate_us: float | None
    message: str
    findings: str
    candidate: str
    duration_s: float
    started_at: str
    confinement: str
    harness_version: str
    torch: str
    hardware: str
    own_share: float | None
    without_own: str | None
    peak_fraction: float | None
    certificate: str
    noise_floor: float | None
    worst_speedup: float | None
    generalisation_gap: float | None
    dtype: str
    rival_turn: int | None
    over_rival: float | None
    over_rival_low: float | None
    clock: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFilter:
    """Every field that is not None must match; strings may contain the wildcards `*` and `?`.

    `min_own_share`: minimum measured share of time in the candidate's code, which must also affect the outputs.
    `condition`: an expression over the columns of ResultRow, see `harness.store.filters`.
    """

    run: str | None = None
    problem: str | None = None
    sample: int | None = None
    turn: int | None = None
    suite: str | None = None
    model: str | None = None
    outcome: str | None = None
    device: str | None = None
    workload: str | None = None
    min_own_share: float | None = None
    condition: str | None = None


COLUMN_KINDS: dict[str, Kind] = {
    name: "text" if "str" in str(kind) else "number" for name, kind in ResultRow.__annotations__.items()
}
# The columns that have no other values.
_VOCABULARIES: dict[str, tuple[str, ...]] = {
    "outcome": tuple(outcome.value for outcome in Outcome),
    "workload": get_args(WorkloadName),
    "language": get_args(Language),
    "verdict": (*get_args(TimingVerdict), UNTIMED),
    "clock": get_args(Clock),
    "without_own": get_args(WithoutOwn),
}
_CHIP = "CASE WHEN device = 'cpu' OR device LIKE 'cuda%' THEN hardware ELSE '' END"


def build_query(columns: str, where: ResultFilter, *, history: bool, order: str) -> tuple[str, tuple[str | float, ...]]:
    """(SQL, parameters); without `history` only the latest evaluation per identity and chip
    (`harness.domain.chip_of`)."""
    wanted = [(field.name, getattr(where, field.name)) for field in fields(where)]
    matches = [_match(name, value) for name, value in wanted if value is not None]
    conditions = [text for text, _ in matches]
    if not history:
        conditions.append(f"e.id IN (SELECT max(id) FROM evaluations GROUP BY slot, {_CHIP})")
    text = f"SELECT {columns} WHERE {' AND '.join(conditions) or 'TRUE'} ORDER BY {order}"
    return text, tuple(value for _, values in matches for value in values)


def order_by(sort: str) -> str:
    """ORDER BY terms for a column, descending with prefix `-`; missing values last. Of equal speedups, exact ones rank
    above lower bounds. Raises UsageError."""
    name = sort.removeprefix("-")
    if name not in ResultRow._fields:
        raise UsageError(f"cannot sort by {name!r}; choose one of {', '.join(ResultRow._fields)}")
    ascending, descending = ("DESC", "ASC") if sort.startswith("-") else ("ASC", "DESC")
    exact = f"coalesce(e.clock, '') IN {INEXACT} {descending}, " if name == "speedup" else ""
    return f"e.{name} {ascending} NULLS LAST, {exact}e.id"


def check_columns(names: Sequence[str]) -> None:
    """Raises UsageError for unknown names."""
    unknown = [name for name in names if name not in ResultRow._fields]
    if unknown:
        known = ", ".join(ResultRow._fields)
        raise UsageError(f"unknown column {', '.join(map(repr, unknown))}; choose among {known}")


def check_value(column: str, value: str) -> None:
    """Raises UsageError for a value that the column cannot have."""
    known = _VOCABULARIES.get(column, ())
    if not known or value in known:
        return
    near = get_close_matches(value, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}"
    raise UsageError(f"unknown {column} {value!r}: {hint}")


def _match(name: str, value: str | float) -> tuple[str, tuple[str | float, ...]]:
    if name == "condition":
        compiled = compile_condition(str(value), COLUMN_KINDS)
        for column, text in list_compared(str(value), COLUMN_KINDS):
            check_value(column, text)
        return compiled
    if isinstance(value, str) and not _has_wildcard(value):
        check_value(name, value)
    if name == "min_own_share":
        # A kernel that does not affect the outputs is a decoy.
        return "e.own_share >= ? AND e.without_own IS NOT 'unchanged'", (value,)
    return f"e.{name} {'GLOB' if _has_wildcard(value) else '='} ?", (value,)


def _has_wildcard(value: str | float) -> bool:
    return isinstance(value, str) and any(sign in value for sign in "*?")
