"""`results/evaluations.csv` and `results/leaderboard.csv`, rewritten atomically from the database.

Column order is stable; new columns are appended. Parquet files need pyarrow, the extra `parquet`.
"""

import csv
import fcntl
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from harness.analysis.leaderboard import LeaderboardRow
from harness.analysis.ranking import rank_stored
from harness.analysis.samples import GroupKey
from harness.domain import Outcome, StoreError, UsageError
from harness.domain.files import raising, replacing
from harness.report.export.json_records import leaderboard_record
from harness.report.values import make_cell, make_printable
from harness.store.columns import COLUMNS, ResultRow
from harness.store.results import ResultStore

EVALUATIONS_CSV = "evaluations.csv"
LEADERBOARD_CSV = "leaderboard.csv"
# Columns of the leaderboard, keys of its JSON record, before and after the shares and the counts of outcomes.
_LEADING = (
    "model", "prompt", "language", "device", "suite", "workload", "baseline", "problems", "scored", "samples"
)  # fmt: skip
_TRAILING = (
    "hardware", "runs", "speedup_low", "speedup_high", "own_share", "certificate", "truncated", "chip", "turns",
    "mean_turns", "best_turn", "tokens_per_correct", "dtype", "usd_per_correct", "clock",
)  # fmt: skip


def write_csvs(
    store: ResultStore, results_dir: Path, *, generated_dir: Path | None = None
) -> tuple[LeaderboardRow, ...]:
    """Keep the old files and raise StoreError if unwritable. Manifests in `generated_dir` list requested problems."""
    try:
        # Reading and replacing under one lock, so that concurrent commands cannot write an older listing last.
        with (results_dir / ".csv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = list(store.rows())
            ranking = rank_stored(rows, generated_dir=generated_dir)
            texts = {EVALUATIONS_CSV: format_evaluations(rows), LEADERBOARD_CSV: format_leaderboard(ranking)}
            for name, text in texts.items():
                with replacing(results_dir / name) as partial:
                    partial.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise StoreError(
            f"cannot write the CSV files in {results_dir}: {error}; all evaluations are stored in {store.path}: "
            "free disk space or correct the permissions; the next command writes them"
        ) from error
    return ranking


def format_evaluations(rows: Sequence[ResultRow], columns: Sequence[str] = tuple(COLUMNS)) -> str:
    return _format_columns(columns, [[getattr(row, name) for row in rows] for name in columns])


def format_records(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    return _format_columns(columns, [[record[name] for record in records] for name in columns])


def format_leaderboard(rows: Sequence[LeaderboardRow]) -> str:
    records = [{"rank": rank} | _flatten_row(row) for rank, row in enumerate(rows, start=1)]
    return format_records(records, list(records[0]) if records else ["rank", *GroupKey._fields])


def _flatten_row(row: LeaderboardRow) -> dict[str, Any]:
    record = leaderboard_record(row)
    return {
        **{name: record[name] for name in _LEADING},
        **{f"fast_{threshold}": share for threshold, share in record["fast"].items()},
        **{f"pass@{at['k']}": at["correct"] for at in record["at_k"]},
        **{f"fast_1@{at['k']}": at["fast_1"] for at in record["at_k"]},
        **{name: record[name] for name in ("geometric_mean_speedup", "timed")},
        **{outcome.value: record["outcomes"].get(outcome.value, 0) for outcome in Outcome},
        **{name: "; ".join(value) if isinstance(value := record[name], list) else value for name in _TRAILING},
    }


def _format_columns(header: Sequence[str], columns: Sequence[list[Any]]) -> str:
    """Write None as an empty cell. Pandas would take three times as long."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*map(_make_cells, columns), strict=True))
    return text.getvalue()


def _make_cells(values: list[Any]) -> list[Any]:
    unsafe = {text: cell for text in set(values) if isinstance(text, str) and (cell := make_cell(text)) != text}
    return [unsafe.get(value, value) for value in values] if unsafe else values


def write_parquet(rows: Sequence[ResultRow], columns: Sequence[str], path: Path) -> None:
    """Write atomically. Raises UsageError without pyarrow, and StoreError if the file cannot be written."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError("--parquet needs pyarrow: pip install pyarrow, or use --csv") from error
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    arrays = [pa.array(_read_column(rows, name), kinds[COLUMNS[name].kind]) for name in columns]
    table = pa.table(arrays, names=list(columns))
    with raising(StoreError, f"write {path}", "; choose another path"), replacing(path) as partial:
        pq.write_table(table, partial, compression="zstd")


def _read_column(rows: Sequence[ResultRow], name: str) -> list[str | float | None]:
    values = [getattr(row, name) for row in rows]
    return [make_printable(value) if isinstance(value, str) else value for value in values]
