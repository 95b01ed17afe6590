"""Builds SQL for filters of stored evaluations, and lists them against another baseline that was measured with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Self

from harness.domain import INEXACT, UNTIMED, Outcome, SampleKey, UsageError
from harness.domain.errors import explain_unknown, suggest
from harness.domain.options import option
from harness.store.columns import COLUMNS, compile_condition, list_compared
from harness.store.serialization import decode_evaluation, encode_columns

if TYPE_CHECKING:
    import sqlite3  # takes 20 ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFilter:
    """Fields that are not None must match; strings may contain `*` and `?`.

    `min_own_share`: of time in the candidate's code, which must affect the outputs. `condition`: see
    `harness.store.columns`.
    """

    title: ClassVar[str] = "Options"
    has_variables: ClassVar[bool] = False  # settings for `generate` must not hide other models in listings

    run: str | None = option(None, "Only this run; * and ? are wildcards.", "--run", key="only_run")
    model: str | None = option(None, "Only this model; wildcards as above.", "--model", key="only_model")
    problem: str | None = option(None, "Only this problem; wildcards as above.", "--problem", key="only_problem")
    suite: str | None = option(None, "Only this suite of problems.", "--suite", key="only_suite")
    outcome: str | None = option(None, "Only this outcome, e.g. correct, build_error.", "--outcome", key="only_outcome")
    device: str | None = option(None, "Only this device: cpu, cuda:0, emulated, none.", "--device", key="only_device")
    workload: str | None = option(
        None, "Only this workload: full, small or reduced.", "--workload", key="only_workload"
    )
    min_own_share: float | None = option(
        None,
        "Only candidates with at least this share of their time in custom kernels, e.g. 0.5.",
        key="own_kernels",
        metavar="SHARE",
        min=0.0,
        max=1.0,
    )
    condition: str | None = option(
        None,
        "Only matching evaluations, e.g. 'outcome == \"correct\" and speedup > 1.2'.",
        key="where",
        metavar="CONDITION",
    )
    sample: int | None = None
    turn: int | None = None

    @classmethod
    def of_sample(cls, key: SampleKey) -> Self:
        return cls(run=key.run, problem=key.problem, sample=key.sample, turn=key.turn)


_CHIP = "CASE WHEN device = 'cpu' OR device LIKE 'cuda%' THEN hardware ELSE '' END"


def build_query(columns: str, where: ResultFilter, *, history: bool, order: str) -> tuple[str, tuple[str | float, ...]]:
    """Return (SQL, parameters). Without `history`, only the latest per identity and `harness.domain.chip_of`."""
    wanted = [(field.name, getattr(where, field.name)) for field in fields(where)]
    matches = [_match(name, value) for name, value in wanted if value is not None]
    conditions = [text for text, _ in matches]
    if not history:
        conditions.append(f"e.id IN (SELECT max(id) FROM evaluations GROUP BY slot, {_CHIP})")
    text = f"SELECT {columns} WHERE {' AND '.join(conditions) or 'TRUE'} ORDER BY {order}"
    return text, tuple(value for _, values in matches for value in values)


def order_by(sort: str) -> str:
    """Return ORDER BY terms (prefix `-`: descending), missing values last, exact speedups first. Raises UsageError."""
    name = sort.removeprefix("-")
    if name not in COLUMNS:
        raise UsageError(f"cannot sort: {explain_unknown('column', name, COLUMNS)}")
    ascending, descending = ("DESC", "ASC") if sort.startswith("-") else ("ASC", "DESC")
    exact = f"coalesce(e.clock, '') IN {INEXACT} {descending}, " if name == "speedup" else ""
    return f"e.{name} {ascending} NULLS LAST, {exact}e.id"


def check_columns(names: Sequence[str]) -> None:
    """Raises UsageError."""
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise UsageError(explain_unknown("column", unknown[0], COLUMNS))


def check_value(column: str, value: str) -> None:
    """Raises UsageError."""
    known = COLUMNS[column].values if column in COLUMNS else ()
    if not known or value in known:
        return
    raise UsageError(explain_unknown(column, value, known))


def _match(name: str, value: str | float) -> tuple[str, tuple[str | float, ...]]:
    if name == "condition":
        compiled = compile_condition(str(value))
        for column, text in list_compared(str(value)):
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


# Columns of the times against a baseline, which are empty in rows without the wanted one.
_TIMES = [name for name, one in COLUMNS.items() if one.path.startswith(("speedup", "timing.", "worst_case.", "gap_"))]
_HAS = "instr(',' || baselines || ',', ',' || :name || ',') > 0"
# The identity of an evaluation without its baseline, see `serialization.identity_of`.
_SLOT = "json_array(run, sample, turn, model, prompt, suite, problem, candidate, language, device, workload, dtype)"
_IS_UNTIMED = f"outcome = '{Outcome.CORRECT}' AND verdict = '{UNTIMED}'"


def list_against(connection: sqlite3.Connection, baseline: str) -> None:
    """Replace the table of evaluations for this connection. Rows that were not timed against `baseline` are untimed,
    and hidden where a row of the same candidate was. Raises UsageError if none was.
    """
    rows = connection.execute("SELECT DISTINCT baseline || ',' || baselines FROM evaluations")
    known = sorted({name for (names,) in rows for name in names.split(",") if name})
    if known and baseline not in known:
        raise UsageError(f"nothing was timed against {baseline!r}; {suggest(baseline, known)}")
    name = {"name": baseline}
    connection.execute("CREATE TEMP TABLE against AS SELECT * FROM evaluations")
    empty = ", ".join(f"{column} = NULL" for column in _TIMES)
    untimed = f"verdict = CASE outcome WHEN '{Outcome.CORRECT}' THEN '{UNTIMED}' END"
    connection.execute(f"UPDATE against SET {empty}, {untimed} WHERE baseline != :name AND NOT {_HAS}", name)
    further = (
        "SELECT e.id, d.evaluation, v.entries FROM evaluations e JOIN details d ON d.evaluation_id = e.id "
        f"JOIN environments v ON v.digest = d.environment WHERE e.baseline != :name AND {_HAS}"
    )
    for number, text, environment in connection.execute(further, name).fetchall():
        evaluation = decode_evaluation(text, environment=environment, build_log="").against(baseline)
        changed = encode_columns(evaluation)
        values = ", ".join(f"{column} = ?" for column in changed)
        connection.execute(f"UPDATE against SET {values} WHERE id = ?", (*changed.values(), number))
    connection.execute(f"UPDATE against SET baseline = :name, slot = {_SLOT}", name)
    timed = f"SELECT slot FROM against WHERE outcome = '{Outcome.CORRECT}' AND verdict IS NOT '{UNTIMED}'"
    connection.execute(f"DELETE FROM against WHERE {_IS_UNTIMED} AND slot IN ({timed})")
    connection.execute("DROP VIEW IF EXISTS temp.evaluations")
    connection.execute("ALTER TABLE temp.against RENAME TO evaluations")
