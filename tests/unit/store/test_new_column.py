"""A column that is added to `ResultRow`, and nowhere else, in a copy of the package."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import harness
from harness.store.results import DATABASE_NAME

SCHEMA_1 = Path(__file__).with_name("results_schema_1.sql")
LAST = '"timing.clock", "which times the speedup compares", since=6)\n'  # ends a column
ADDED = '    resolution_us: float | None = _column("timing.resolution_us", "", since=7, unit="us")\n'
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


def test_a_column_is_declared_in_one_place(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "runtime", "vendor")
    copy = shutil.copytree(Path(harness.__file__).parent, tmp_path / "copy" / "harness", ignore=ignored)
    declared = copy / "store" / "columns.py"
    assert LAST in declared.read_text()
    declared.write_text(declared.read_text().replace(LAST, LAST + ADDED))
    (tmp_path / "results").mkdir()
    with closing(sqlite3.connect(tmp_path / "results" / DATABASE_NAME)) as connection, connection:
        connection.executescript(SCHEMA_1.read_text())
        connection.execute("UPDATE evaluations SET model = 'older' WHERE id = 1")
        measured = "evaluation = json_set(evaluation, '$.timing.resolution_us', 2.5)"
        connection.execute(f"UPDATE details SET {measured} WHERE evaluation_id = 1")
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
