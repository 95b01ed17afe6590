"""Exports evaluations to Weights & Biases and MLflow: a table with a row per evaluation, the report, and counts.

Server and key are those of the tracker's own variables, such as WANDB_API_KEY and MLFLOW_TRACKING_URI.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from harness.domain import Outcome, ProviderError, UsageError
from harness.report.html.page import ReportChoice, make_page
from harness.report.values import make_strict
from harness.shipped import name_install
from harness.store.columns import COLUMNS, Value
from harness.store.results import ResultFilter, ResultStore

Tracker = Literal["wandb", "mlflow"]
TABLE = "evaluations"


def export_to_tracker(tracker: Tracker, project: str, run: str, results_dir: Path, generated_dir: Path) -> str:
    """Return the address of the tracked run. Raises UsageError without the tracker's package or without an evaluation,
    and ProviderError with the tracker's reason.
    """
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
