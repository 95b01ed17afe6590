"""The notebook of examples/, executed as a user does."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")


@pytest.fixture
def notebook():
    return nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)


def read_output(cell) -> str:
    return "".join(one.get("text", "") or one.get("data", {}).get("text/plain", "") for one in cell.outputs)


@pytest.mark.slow
def test_notebook_evaluates_plots_and_improves(notebook, tmp_path, monkeypatch, clean_environment_for, needs_compiler):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "recordings" / "repair", tmp_path / "recordings" / "repair")
    for name, value in clean_environment_for(MPLBACKEND="module://matplotlib_inline.backend_inline").items():
        monkeypatch.setenv(name, value)
    place = {"metadata": {"path": tmp_path / "examples"}}
    nbclient.NotebookClient(notebook, timeout=700, kernel_name="python3", resources=place).execute()
    evaluated, plotted, improved, listed = (cell for cell in notebook.cells if cell.cell_type == "code")
    outcomes = [line.split(": ")[1].split(".")[0] for line in read_output(evaluated).splitlines()]
    assert outcomes == ["correct", "wrong_value", "correct", "correct"]
    assert any("image/png" in one.get("data", {}) for one in plotted.outputs)
    assert "turn 0: wrong_value" in read_output(improved)
    assert "turn 1: correct" in read_output(improved)
    assert "written: softmax_overflows.best.py" in read_output(improved)
    assert "softmax" in read_output(listed)


def test_notebook_is_stored_without_outputs(notebook):
    assert [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")] == []
