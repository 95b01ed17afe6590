"""`results/evaluations.csv` and `results/leaderboard.csv`, rewritten atomically from the database.

Column order is stable; new columns are appended. Parquet files need pyarrow, the extra `parquet`.
"""

import csv
import fcntl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from harness.analysis.leaderboard import LeaderboardRow
from harness.analysis.ranking import rank_stored
from harness.analysis.samples import GroupKey
from harness.domain import Outcome, ProviderError, StoreError, UsageError
from harness.domain.files import raising, replacing
from harness.report.export.json_records import leaderboard_record
from harness.report.values import make_cell, make_printable, make_strict
from harness.shipped import name_install
from harness.store.columns import COLUMNS, ResultRow, Value
from harness.store.results import ResultFilter, ResultStore

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
    arrays = []
    for name in columns:
        values = [getattr(row, name) for row in rows]
        printable = [make_printable(value) if isinstance(value, str) else value for value in values]
        arrays.append(pa.array(printable, kinds[COLUMNS[name].kind]))
    table = pa.table(arrays, names=list(columns))
    with raising(StoreError, f"write {path}", "; choose another path"), replacing(path) as partial:
        pq.write_table(table, partial, compression="zstd")


Tracker = Literal["wandb", "mlflow"]
TABLE = "evaluations"


def export_to_tracker(tracker: Tracker, project: str, run: str, results_dir: Path, generated_dir: Path) -> str:
    """Return the run's address. Raises UsageError, or ProviderError with the tracker's reason."""
    from harness.report.html.page import ReportChoice, make_page

    log: Callable[..., str] = {"wandb": _log_wandb, "mlflow": _log_mlflow}[tracker]
    choice = ReportChoice(runs=(run,), where=ResultFilter(run=run), generated_dir=generated_dir)
    with ResultStore.open(results_dir, read_only=True) as store, TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        report.write_text(make_page(store, choice, now=datetime.now(UTC)).html, encoding="utf-8")
        rows = list(store.rows(choice.where))
        table = {name: [make_strict(getattr(row, name)) for row in rows] for name in COLUMNS}
        counts = {"evaluations": len(rows), "correct": sum(row.outcome == Outcome.CORRECT for row in rows)}
        try:
            return log(project, run, table, counts, report)
        except ModuleNotFoundError as error:
            raise UsageError(f"--format {tracker} needs {error.name}: {name_install(tracker)}") from error


def _log_wandb(project: str, run: str, table: dict[str, list[Value]], counts: dict[str, int], report: Path) -> str:
    import wandb

    try:
        with wandb.init(project=project, name=run, job_type="harness") as tracked:
            rows = [list(values) for values in zip(*table.values(), strict=True)]
            tracked.log({TABLE: wandb.Table(columns=list(table), data=rows)})
            artifact = wandb.Artifact(f"report-{tracked.id}", type="report")
            artifact.add_file(str(report), name="report.html")
            tracked.log_artifact(artifact)
            tracked.summary.update(counts)
            return tracked.url or str(Path(tracked.dir).parent)
    except wandb.Error as error:
        raise ProviderError(
            f"Weights & Biases: {str(error).rstrip('.')}; WANDB_MODE=offline writes a local folder"
        ) from error


def _log_mlflow(project: str, run: str, table: dict[str, list[Value]], counts: dict[str, int], report: Path) -> str:
    import mlflow

    try:
        mlflow.set_experiment(project)
        with mlflow.start_run(run_name=run) as tracked:
            mlflow.log_table(table, f"{TABLE}.json")
            mlflow.log_artifact(str(report))
            mlflow.log_metrics(counts)
            return str(tracked.info.artifact_uri)
    except mlflow.MlflowException as error:
        raise ProviderError(f"MLflow: {error}; MLFLOW_TRACKING_URI names the server or a local database") from error
