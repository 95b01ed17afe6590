"""`harness runs`, as typed."""

import io
import json
import sqlite3
from contextlib import closing

import pytest

from harness.store.results import DATABASE_NAME, ResultStore
from harness.store.runs import hold_run

RIGHT, WRONG = "class ModelNew: ...", "class ModelNew: pass"


@pytest.fixture
def two_runs(write_run, evaluation_of, tmp_path):
    """Runs `first` (two answers, one correct) and `second`; the latter has the program of the former, too."""
    write_run("first", [RIGHT, None])
    write_run("second", [RIGHT, WRONG])
    of = {"suite": "tiny", "candidate_digest": "a" * 16}
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", run="first", **of), RIGHT)
        store.record(evaluation_of("no_code", run="first", sample=1, suite="tiny", candidate_digest=""))
        store.record(evaluation_of("correct", run="second", **of), RIGHT)
        changed = {"run": "second", "sample": 1, "suite": "tiny", "candidate_digest": "b" * 16}
        store.record(evaluation_of("wrong_value", **changed, extra={"environment": (("torch", "1"),)}), WRONG)
        store.record(evaluation_of("correct", run="file", model="kernel.py", candidate_digest="c" * 16))
    return tmp_path


def count_rows(folder):
    tables = ("evaluations", "details", "candidates", "environments")
    with closing(sqlite3.connect(folder / "results" / DATABASE_NAME)) as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
        prints = connection.execute("SELECT count(DISTINCT candidate) FROM fingerprints").fetchone()[0]
    return [*counts, prints]


def test_runs_are_listed_with_their_counts_and_dates(two_runs, call_harness):
    runs = {run["name"]: run for run in map(json.loads, call_harness(["runs", "list", "--json"]).stdout.splitlines())}
    counts = {name: (run["answers"], run["evaluations"], run["correct"]) for name, run in runs.items()}
    assert counts == {"first": (2, 2, 1), "second": (2, 2, 1), "file": (0, 1, 1)}
    assert (runs["first"]["models"], runs["first"]["created_at"][:10]) == (["model-a"], "2025-01-01")
    table = call_harness(["runs"]).stdout
    assert "2025-01-01" in table
    assert max(map(len, table.splitlines())) <= 80


def test_the_name_of_a_run_stays_in_one_line(two_runs, call_harness, write_run):
    write_run("gemini_level1_run", [RIGHT])
    lines = [line.rstrip() for line in call_harness(["runs"]).stdout.splitlines()]
    at = next(at for at, line in enumerate(lines) if line.startswith("gemini_level1_run "))
    assert lines[at + 1] == "model-a; tiny, cpp"
    assert max(map(len, lines)) <= 80


def test_a_damaged_manifest_does_not_hide_the_other_runs(two_runs, call_harness):
    (two_runs / "generated" / "first" / "manifest.json").write_text("{")
    runs = {run["name"]: run for run in map(json.loads, call_harness(["runs", "list", "--json"]).stdout.splitlines())}
    assert "is damaged" in runs["first"]["error"]
    assert runs["second"]["error"] == ""


def test_without_runs_the_command_says_so(call_harness):
    assert call_harness(["runs"]).stdout == "no runs in generated and results\n"


def test_a_run_is_removed_with_what_only_it_refers_to(two_runs, call_harness):
    assert count_rows(two_runs) == [5, 5, 2, 2, 2]
    done = call_harness(["runs", "rm", "second", "--yes"])
    assert done.stdout == "removed 2 answers and 2 evaluations of run second\n"
    assert count_rows(two_runs) == [3, 3, 1, 1, 1]
    assert not (two_runs / "generated" / "second").exists()
    assert (two_runs / "generated" / "first" / "add" / "0" / "candidate.py").is_file()
    listing = (two_runs / "results" / "evaluations.csv").read_text()
    assert "first" in listing
    assert "second" not in listing


def test_nothing_is_removed_without_consent(two_runs, call_harness, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    done = call_harness(["runs", "rm", "second"])
    assert done.returncode == 1
    assert count_rows(two_runs)[0] == 5
    assert (two_runs / "generated" / "second").is_dir()


@pytest.mark.parametrize(("name", "hint"), [("secnd", "did you mean second?"), ("../results", "no run '../results'")])
def test_an_unknown_run_is_not_removed(two_runs, call_harness, name, hint):
    done = call_harness(["runs", "rm", name, "--yes"])
    assert done.returncode == 2
    assert hint in done.stderr
    assert count_rows(two_runs)[0] == 5


def test_a_run_that_is_being_generated_keeps_everything(two_runs, call_harness):
    with hold_run(two_runs / "generated" / "first"):
        done = call_harness(["runs", "rm", "first", "--yes"])
    assert done.returncode == 2
    assert "another process is generating run 'first'" in done.stderr
    assert count_rows(two_runs)[0] == 5


def test_run_is_annotated_and_found_by_its_tag(two_runs, call_harness):
    done = call_harness(["runs", "note", "first", "before the fix", "--tag", "final", "--tag", "h100"])
    assert done.stdout == "first: [final, h100] before the fix\n"
    call_harness(["runs", "note", "first", "--untag", "h100"])
    (run,) = map(json.loads, call_harness(["runs", "list", "--tag", "final", "--json"]).stdout.splitlines())
    assert (run["name"], run["note"], run["tags"]) == ("first", "before the fix", ["final"])
    assert "first: [final] before the fix" in call_harness(["runs"]).stdout
    assert call_harness(["runs", "list", "--tag", "fina"]).stdout == "no run has the tag 'fina'; tags: final\n"
    assert call_harness(["runs", "note", "first", "", "--untag", "final"]).stdout == "first has no note and no tags\n"


def test_notes_need_a_generated_run_and_may_be_damaged(two_runs, call_harness):
    done = call_harness(["runs", "note", "firs", "x"])
    assert (done.returncode, "did you mean first?" in done.stderr) == (2, True)
    (two_runs / "generated" / "first" / "notes.json").write_text("[]")
    runs = map(json.loads, call_harness(["runs", "list", "--json"]).stdout.splitlines())
    assert {run["name"]: "notes.json is damaged" in run["error"] for run in runs}["first"]
    assert call_harness(["runs", "note", "first", "x"]).returncode == 3
