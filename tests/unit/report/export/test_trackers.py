"""Export of a run to Weights & Biases and MLflow, by their real packages, which write local files."""

import json
import logging

import pytest

from harness.report.export.table_files import export_to_tracker
from harness.store.columns import COLUMNS
from harness.store.results import ResultStore


@pytest.fixture
def stored(tmp_path, monkeypatch, evaluation_of):
    monkeypatch.chdir(tmp_path)
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0), "x = 1\n")
        store.record(evaluation_of("timeout", sample=1), "x = 2\n")
        store.record(evaluation_of("correct", run="other"), "x = 3\n")
    return tmp_path / "results", tmp_path / "generated"


def check_table(table):
    assert table["columns"] == list(COLUMNS)
    rows = [dict(zip(table["columns"], values, strict=True)) for values in table["data"]]
    assert [(row["outcome"], row["speedup"]) for row in rows] == [("correct", 2.0), ("timeout", None)]


@pytest.mark.slow
def test_wandb_gets_a_row_per_evaluation_and_the_report(stored, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="wandb is not installed")
    for name, value in {"MODE": "offline", "SILENT": "true", "DATA_DIR": tmp_path / "data"}.items():
        monkeypatch.setenv(f"WANDB_{name}", str(value))
    place = export_to_tracker("wandb", "kernels", "demo", *stored)
    (table,) = tmp_path.rglob("media/table/*.table.json")
    check_table(json.loads(table.read_text()))
    (log,) = tmp_path.rglob("*.wandb")
    assert str(log.parent.resolve()) == place
    assert b"report.html" in log.read_bytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # mlflow's own
def test_mlflow_gets_a_row_per_evaluation_and_the_report(stored, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the database backend needs more packages
    monkeypatch.setattr(logging.getLogger("mlflow"), "propagate", False)
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    try:
        place = export_to_tracker("mlflow", "kernels", "demo", *stored)
    finally:
        mlflow.set_tracking_uri(None)
    folder = tmp_path / "mlruns" / place.split("/mlruns/")[1]
    check_table(json.loads((folder / "evaluations.json").read_text()))
    assert "Content-Security-Policy" in (folder / "report.html").read_text()
    assert (folder.parent / "metrics" / "correct").read_text().split()[1] == "1.0"


@pytest.mark.slow
def test_refusal_of_a_tracker_is_an_error_with_its_reason(stored, run_harness, tmp_path):
    pytest.importorskip("wandb", reason="wandb is not installed")
    environment = {"WANDB_API_KEY": "", "NETRC": str(tmp_path / "netrc"), "HOME": str(tmp_path)}
    done = run_harness(["export", "--format", "wandb", "--run", "demo", "kernels"], env=environment)
    assert done.returncode == 3
    assert "API key" in done.stderr
    assert done.stderr.endswith("WANDB_MODE=offline writes a local folder\n")


def test_tracker_needs_a_run(call_harness):
    done = call_harness(["export", "--format", "mlflow", "--suite", "core", "kernels"])
    assert (done.returncode, "name a run with --run" in done.stderr) == (2, True)
