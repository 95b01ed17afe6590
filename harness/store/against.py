"""Lists stored evaluations against another one of the baselines that were measured with them."""

from __future__ import annotations

import sqlite3
from difflib import get_close_matches

from harness.domain import UNTIMED, Outcome, UsageError
from harness.store.columns import COLUMNS
from harness.store.serialization import decode_evaluation, encode_columns

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
    _require_measured(connection, baseline)
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


def _require_measured(connection: sqlite3.Connection, baseline: str) -> None:
    rows = connection.execute("SELECT DISTINCT baseline || ',' || baselines FROM evaluations")
    known = sorted({name for (names,) in rows for name in names.split(",") if name})
    if known and baseline not in known:
        near = get_close_matches(baseline, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"measured: {', '.join(known)}"
        raise UsageError(f"nothing was timed against {baseline!r}: {hint}")
