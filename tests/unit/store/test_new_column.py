"""A column that is added to `ResultRow`, and nowhere else, in a copy of the package."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness.store.results import DATABASE_NAME, ResultFilter, ResultStore

LAST = '"timing.clock", "which times the speedup compares")\n'  # ends a column
ADDED = '    resolution_us: float | None = _column("timing.resolution_us", "", unit="us")\n'
PROGRAM = """
from dataclasses import replace
from pathlib import Path
import harness
from harness.cli.main import run_command
from harness.store.results import ResultStore

with ResultStore.open(Path("results")) as store:
    old = store.get(1).evaluation
    subject = replace(old.subject, model="added")
    store.record(replace(old, subject=subject, timing=replace(old.timing, resolution_us=2500.0)))
chosen = ["--columns", "model,resolution_us", "--where", "resolution_us > 1", "--sort", "-resolution_us"]
for output in ([], ["--csv"], ["--json"]):
    run_command(["results", *chosen, *output])
print(sorted(harness.load_results()["resolution_us"].dropna()))
"""


def query(results_dir, text):
    with closing(sqlite3.connect(results_dir / DATABASE_NAME)) as connection, connection:
        return connection.execute(text).fetchall()


@pytest.fixture
def without_columns(tmp_path, evaluation_of):
    """A file that lacks columns, with an evaluation whose JSON has their values."""
    with ResultStore.open(tmp_path) as store:
        store.record(evaluation_of("correct", 2.0, extra={"certificate": "e" * 16}))
    for name in ("certificate", "clock"):
        query(tmp_path, f"ALTER TABLE evaluations DROP COLUMN {name}")
    return tmp_path


def test_a_missing_column_has_the_values_of_the_stored_evaluations(without_columns):
    before = (without_columns / DATABASE_NAME).read_bytes()
    with ResultStore.open(without_columns, read_only=True) as store:
        (row,) = store.rows()
        assert (row.certificate, row.clock) == ("e" * 16, "call")
        assert store.count(ResultFilter(condition='clock == "call"')) == 1
    assert (without_columns / DATABASE_NAME).read_bytes() == before


def test_a_writer_adds_missing_columns_while_others_read(without_columns, evaluation_of):
    with ResultStore.open(without_columns, read_only=True) as reader:
        before = list(reader.rows())
        for _ in range(2):
            with ResultStore.open(without_columns) as writer:
                writer.record(evaluation_of("correct", 2.0, model="new"))
        assert [row.model for row in reader.rows(history=True)] == [before[0].model, "new", "new"]
        assert next(iter(reader.rows())) == before[0]
    assert query(without_columns, "SELECT certificate FROM evaluations") == [("e" * 16,), ("",), ("",)]


def test_a_column_is_declared_in_one_place(tmp_path, evaluation_of):
    ignored = shutil.ignore_patterns("__pycache__", "runtime", "vendor")
    copy = shutil.copytree(Path(harness.__file__).parent, tmp_path / "copy" / "harness", ignore=ignored)
    declared = copy / "store" / "columns.py"
    assert LAST in declared.read_text()
    declared.write_text(declared.read_text().replace(LAST, LAST + ADDED))
    timed = evaluation_of("correct", 2.0, model="older")
    with ResultStore.open(tmp_path / "results") as store:
        store.record(replace(timed, timing=replace(timed.timing, resolution_us=2.5)))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "copy"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80"}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    lines = [" ".join(line.split()) for line in run.stdout.splitlines()]
    assert [line for line in lines if line.startswith(("added", "older", "{", "["))] == [
        "added 2.5 ms", "older 2.5 us",
        "added,2500.0", "older,2.5",
        '{"model": "added", "resolution_us": 2500.0}', '{"model": "older", "resolution_us": 2.5}',
        "[2.5, 2500.0]",
    ]  # fmt: skip
