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
    clock) and "%" for shares. `meaning` explains it to users. `values` lists all
    possible values.
    """

    path: str
    older_path: str = ""
    since: int = 1
    unit: Literal["", "x", "x by clock", "%", "us"] = ""
    is_short: bool = False
    meaning: str = ""
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
    """One evaluation as a flat row, in the order of the CSV file (append new columns). `meaning` is also in
    docs/report.md.

    A NamedTuple without JSON decoding, because listings hold 100,000 rows.
    """

    id: Annotated[int, Column("", meaning="number of the evaluation, for `harness show ID`")]  # given by the database
    run: Annotated[
        str, Column("subject.run", meaning="name of the run in generated/; `file` for programs given as files")
    ]
    problem: Annotated[str, Column("subject.problem", meaning="the problem's name")]
    sample: Annotated[
        int, Column("subject.sample", meaning="number of the draw for this problem, model and prompt, from 0")
    ]
    turn: Annotated[int, Column("subject.turn", meaning="repair or optimisation step of the sample, from 0")]
    suite: Annotated[str, Column("subject.suite", meaning="folder of the problem")]
    model: Annotated[str, Column("subject.model", meaning="the model that wrote the program, or the name of the file")]
    prompt: Annotated[str, Column("subject.prompt", meaning="name of the prompt template")]
    language: Annotated[Language, Column("subject.language", meaning="what the kernels are written in")]
    device: Annotated[
        str,
        Column(
            "subject.device",
            is_short=True,
            meaning="where the program ran: `cpu`, `cuda:0`, `emulated`, or `none` if no device was needed",
        ),
    ]
    workload: Annotated[
        WorkloadName, Column("subject.workload", meaning="sizes: `full` is scored; `small` and `reduced` are for tests")
    ]
    outcome: Annotated[str, Column("outcome", values=tuple(Outcome), meaning="the verdict on correctness")]
    speedup: Annotated[
        float | None,
        Column(
            "speedup",
            unit="x by clock",
            meaning="baseline time divided by the program's, only if correct and confirmed; 1 for a tie",
        ),
    ]
    speedup_low: Annotated[
        float | None, Column("timing.speedup_low", unit="x", meaning="lower end of the interval of the speedup")
    ]
    speedup_high: Annotated[
        float | None, Column("timing.speedup_high", unit="x", meaning="upper end of the interval of the speedup")
    ]
    verdict: Annotated[TimingVerdict | Literal["untimed"] | None, Column("verdict", meaning="the verdict on speed")]
    baseline: Annotated[
        str, Column("subject.baseline", meaning="what the program is timed against; the first of several")
    ]
    baseline_us: Annotated[
        float | None, Column("timing.baseline_us", unit="us", meaning="the baseline's time of one call")
    ]
    candidate_us: Annotated[
        float | None, Column("timing.candidate_us", unit="us", meaning="the program's time of one call")
    ]
    message: Annotated[str, Column("message", meaning="the main reason of the outcome")]
    findings: Annotated[str, Column("findings_summary", meaning="severity and check of each finding")]
    candidate: Annotated[str, Column("subject.candidate_digest", meaning="digest of the program; empty without one")]
    duration_s: Annotated[float, Column("duration_s", meaning="how long the evaluation took")]
    started_at: Annotated[str, Column("started_at", meaning="when the evaluation began, in UTC")]
    confinement: Annotated[str, Column("isolation", meaning="isolation layers of the worker process")]
    harness_version: Annotated[str, Column("facts.harness", meaning="version of harness")]
    torch: Annotated[str, Column("facts.torch", meaning="version of PyTorch")]
    hardware: Annotated[str, Column("hardware", meaning="the GPU or CPU")]
    own_share: Annotated[
        float | None,
        Column(
            "work.custom",
            "work.own",
            since=2,
            unit="%",
            meaning="share of a call's time in the candidate's own compiled code",
        ),
    ]
    without_own: Annotated[
        WithoutCustom | None,
        Column(
            "work.without_custom", "work.without_own", since=2, meaning="effect on the outputs of disabling that code"
        ),
    ]
    peak_fraction: Annotated[
        float | None,
        Column(
            "roofline.peak_fraction",
            "plausibility.peak_fraction",
            since=2,
            unit="%",
            meaning="share of the device's measured peak",
        ),
    ]
    certificate: Annotated[
        str, Column("certificate", since=2, meaning="digest of the valid certificate of the red team")
    ]
    noise_floor: Annotated[
        float | None,
        Column(
            "timing.noise_floor",
            since=2,
            unit="%",
            meaning="largest deviation from 1 of a program's speedup over itself",
        ),
    ]
    worst_speedup: Annotated[
        float | None,
        Column("worst_case.timing.speedup", since=3, unit="x by clock", meaning="speedup of the slowest case"),
    ]
    generalisation_gap: Annotated[
        float | None,
        Column(
            "generalisation_gap.ratio",
            since=3,
            meaning="mean speedup of the known cases divided by that of the secret ones",
        ),
    ]
    dtype: Annotated[
        str,
        Column(
            "subject.dtype",
            since=4,
            is_short=True,
            meaning="dtype chosen by `--dtype`; empty: as in the problem's file",
        ),
    ]
    rival_turn: Annotated[
        int | None, Column("comparison.turn", since=5, meaning="the previously best turn of a search")
    ]
    over_rival: Annotated[
        float | None, Column("comparison.speedup", since=5, meaning="speedup over the rival turn, in A/B pairs")
    ]
    over_rival_low: Annotated[
        float | None, Column("comparison.speedup_low", since=5, meaning="lower end of the interval of `over_rival`")
    ]
    clock: Annotated[Clock | None, Column("timing.clock", since=6, meaning="which times the speedup compares")]
    gap_closed: Annotated[
        float | None,
        Column("gap_closed", since=7, unit="%", meaning="share of the gap from baseline to roofline that is closed"),
    ]
    achieved_gb_s: Annotated[
        float | None, Column("achieved_gb_s", since=7, meaning="bytes that the problem must move / time of a call")
    ]
    achieved_tflops: Annotated[
        float | None, Column("achieved_tflops", since=7, meaning="operations of the reference / time of a call")
    ]
    baselines: Annotated[
        str, Column("measured_baselines", since=8, meaning="the baselines with a time, separated by commas")
    ]
    fastest_baseline: Annotated[
        str | None, Column("fastest.baseline", since=8, meaning="the fastest of several baselines")
    ]
    over_fastest: Annotated[
        float | None, Column("fastest.ranked_speedup", since=8, unit="x", meaning="speedup over `fastest_baseline`")
    ]
    memory_bytes: Annotated[
        int | None,
        Column("timing.candidate_bytes", since=9, meaning="device memory of a replayed call, beside its inputs"),
    ]
    baseline_memory_bytes: Annotated[
        int | None, Column("timing.baseline_bytes", since=9, meaning="the baseline's device memory of a call")
    ]
    energy_mj: Annotated[
        float | None,
        Column("timing.candidate_mj", since=9, meaning="energy of a call in millijoule, with `--energy` on a GPU"),
    ]
    baseline_energy_mj: Annotated[
        float | None, Column("timing.baseline_mj", since=9, meaning="the baseline's energy of a call")
    ]
    call_us: Annotated[
        float | None,
        Column(
            "timing.candidate_call_us",
            since=10,
            unit="us",
            meaning="the program's whole call on a GPU, host work included, by the evaluator's clock",
        ),
    ]
    baseline_call_us: Annotated[
        float | None, Column("timing.baseline_call_us", since=10, unit="us", meaning="the baseline's whole call")
    ]
    call_speedup: Annotated[
        float | None,
        Column(
            "call_speedup", since=10, unit="x", meaning="`baseline_call_us` / `call_us`; it does not affect the verdict"
        ),
    ]


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
