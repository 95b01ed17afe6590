"""Declares the columns of one evaluation's row. Database, CSV, DataFrame, Parquet, `--where`, terminal tables and the
report's page derive theirs from these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from harness.domain import Clock, Evaluation, Language, Outcome, TimingVerdict, WithoutCustom, WorkloadName

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """`path` lists the attributes from an Evaluation to the value, also in stored JSON (`older_path` with older names).
    `since` is the schema that added the column. `unit` is "x" for ratios ("x by clock" with the sign of the row's
    clock) and "%" for shares. `values` lists all possible values.
    """

    path: str
    older_path: str = ""
    since: int = 1
    unit: Literal["", "x", "x by clock", "%", "us"] = ""
    is_short: bool = False
    values: tuple[str, ...] = ()
    kind: type[str | int | float] = str
    is_optional: bool = False

    @property
    def is_number(self) -> bool:
        return self.kind is not str

    @property
    def is_whole(self) -> bool:
        return self.is_number or self.is_short or bool(self.values)

    @property
    def sql_type(self) -> str:
        name = {str: "TEXT", int: "INTEGER", float: "REAL"}[self.kind]
        return name if self.is_optional else f"{name} NOT NULL" + (" DEFAULT ''" if self.since > 1 else "")

    def read(self, evaluation: Evaluation) -> Value:
        value: Any = evaluation
        for name in self.path.split("."):
            value = value.get(name) if isinstance(value, dict) else getattr(value, name)
            if value is None:
                return None if self.is_optional else ""
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value  # no lone surrogates


class ResultRow(NamedTuple):
    """One evaluation as a flat row, in the order of the CSV file (append new columns). docs/report.md describes the
    columns.

    A NamedTuple without JSON decoding, because listings hold 100,000 rows.
    """

    id: Annotated[int, Column("")]  # given by the database
    run: Annotated[str, Column("subject.run")]
    problem: Annotated[str, Column("subject.problem")]
    sample: Annotated[int, Column("subject.sample")]
    turn: Annotated[int, Column("subject.turn")]
    suite: Annotated[str, Column("subject.suite")]
    model: Annotated[str, Column("subject.model")]
    prompt: Annotated[str, Column("subject.prompt")]
    language: Annotated[Language, Column("subject.language")]
    device: Annotated[str, Column("subject.device", is_short=True)]
    workload: Annotated[WorkloadName, Column("subject.workload")]
    outcome: Annotated[str, Column("outcome", values=tuple(Outcome))]
    speedup: Annotated[float | None, Column("speedup", unit="x by clock")]
    speedup_low: Annotated[float | None, Column("timing.speedup_low", unit="x")]
    speedup_high: Annotated[float | None, Column("timing.speedup_high", unit="x")]
    verdict: Annotated[TimingVerdict | Literal["untimed"] | None, Column("verdict")]
    baseline: Annotated[str, Column("subject.baseline")]
    baseline_us: Annotated[float | None, Column("timing.baseline_us", unit="us")]
    candidate_us: Annotated[float | None, Column("timing.candidate_us", unit="us")]
    message: Annotated[str, Column("message")]
    findings: Annotated[str, Column("findings_summary")]
    candidate: Annotated[str, Column("subject.candidate_digest")]
    duration_s: Annotated[float, Column("duration_s")]
    started_at: Annotated[str, Column("started_at")]
    confinement: Annotated[str, Column("isolation")]
    harness_version: Annotated[str, Column("facts.harness")]
    torch: Annotated[str, Column("facts.torch")]
    hardware: Annotated[str, Column("hardware")]
    own_share: Annotated[float | None, Column("work.custom", "work.own", since=2, unit="%")]
    without_own: Annotated[WithoutCustom | None, Column("work.without_custom", "work.without_own", since=2)]
    peak_fraction: Annotated[
        float | None, Column("roofline.peak_fraction", "plausibility.peak_fraction", since=2, unit="%")
    ]
    certificate: Annotated[str, Column("certificate", since=2)]
    noise_floor: Annotated[float | None, Column("timing.noise_floor", since=2, unit="%")]
    worst_speedup: Annotated[float | None, Column("worst_case.timing.speedup", since=3, unit="x by clock")]
    generalisation_gap: Annotated[float | None, Column("generalisation_gap.ratio", since=3)]
    dtype: Annotated[str, Column("subject.dtype", since=4, is_short=True)]
    rival_turn: Annotated[int | None, Column("comparison.turn", since=5)]
    over_rival: Annotated[float | None, Column("comparison.speedup", since=5)]
    over_rival_low: Annotated[float | None, Column("comparison.speedup_low", since=5)]
    clock: Annotated[Clock | None, Column("timing.clock", since=6)]


def _complete(annotation: Any) -> Column:
    kind: Any
    column: Column
    kind, column = get_args(annotation)
    parts = _flatten(kind)
    values = tuple(part for part in parts if isinstance(part, str))
    types = [one for one in (str, int, float) if one in parts] or [str]
    return replace(column, kind=types[0], is_optional=NoneType in parts, values=column.values or values)


def _flatten(kind: Any) -> list[Any]:
    parts = get_args(kind)
    return [one for part in parts for one in _flatten(part)] if parts else [kind]


COLUMNS = {name: _complete(kind) for name, kind in get_type_hints(ResultRow, include_extras=True).items()}
SCHEMA_VERSION = max(column.since for column in COLUMNS.values())


def make_row(evaluation: Evaluation, number: int = 0) -> ResultRow:
    return ResultRow(number, *(column.read(evaluation) for name, column in COLUMNS.items() if name != "id"))  # type: ignore[arg-type]
