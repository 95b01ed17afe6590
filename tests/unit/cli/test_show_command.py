"""`harness show`, run the way a user runs it."""

import json

import pytest
from browsing import SOURCE

from harness.domain import Finding, UsageError
from harness.store.results import ResultStore


def test_show_prints_source_and_log_only_on_request(run, stored):
    output = run("show", "1").stdout
    for expected in ("Evaluation 1: correct", "(60 lines of log; --log shows them)", "correct 2.00x against eager"):
        assert expected in output
    assert "1 class ModelNew:" in output
    assert "line 5\n" not in output
    assert "line 5\n" in run("show", "1", "--log").stdout


def test_show_says_what_a_repair_step_changed(run, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("build_error", candidate_digest="a" * 16, device="none"), "x = 1\ny = 2\n")
        store.record(evaluation_of("correct", turn=1, candidate_digest="b" * 16), "x = 1\ny = 3\n")
    output = run("show", "2").stdout
    assert "Changed since turn 0" in output
    assert [line.strip() for line in output.splitlines() if line[:2] in ("-y", "+y")] == ["-y = 2", "+y = 3"]
    assert "Changed since" not in run("show", "1").stdout


def test_show_cuts_a_long_source_and_says_so(run, tmp_path, evaluation_of):
    source = "".join(f"line_{number} = '{'x' * 500}'\n" for number in range(1, 100))
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct"), source)
    output = run("show", "1").stdout
    assert "(39 more lines; --source shows all)" in output
    assert "line_61" not in output
    assert "line_99" in run("show", "1", "--source").stdout


def test_show_takes_the_path_of_a_sample_and_names_its_other_evaluations(run, stored):
    outcome = run("show", "demo/softmax/0", "--json")
    assert json.loads(outcome.stdout)["id"] == 4
    assert "also evaluated: 1 (cpu, full, eager)" in outcome.stderr


def test_show_gives_the_source_byte_for_byte(run, stored):
    assert run("show", "4", "--source").stdout_bytes == SOURCE.encode()


def test_show_as_json_holds_source_and_log(run, stored):
    record = json.loads(run("show", "1", "--json").stdout)
    assert (record["id"], record["outcome"], record["speedup"], record["source"]) == (1, "correct", 2.0, SOURCE)
    assert record["build_log"].endswith("line 59")


def test_show_says_when_there_is_no_source(run, stored):
    with pytest.raises(UsageError, match=r"evaluation 2 has no source to print: .* was not stored"):
        run("show", "2", "--source")
    with pytest.raises(UsageError, match="evaluation 3 has no source to print: no code was found"):
        run("show", "3", "--source")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("7", "the nearest are 2, 3, 4"),
        ("9" * 40, "give a number from `harness results`, or RUN/PROBLEM/SAMPLE"),
        ("demo/sofmax/0", "did you mean demo/softmax/0"),
        ("demo/softmax/0/turn-3", "did you mean demo/softmax/0"),
        ("-", "give a number"),
        ("//", "give a number"),
    ],
)
def test_an_unknown_id_names_near_ones(run, stored, name, hint):
    with pytest.raises(UsageError, match=f"no evaluation '{name}' in .*harness.db: {hint}"):
        run("show", "--", name)


def test_show_without_any_results_says_how_to_get_some(run):
    with pytest.raises(UsageError, match="no evaluations in results yet"):
        run("show", "1")


def test_show_names_and_marks_the_line_that_a_finding_points_at(run, tmp_path, evaluation_of):
    finding = Finding(check="exception", severity="fatal", message="it failed", evidence='File "candidate.py", line 2')
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("rejected", extra={"findings": (finding,)}), "import os\nos.system('x')\n")
    output = run("show", "1").stdout
    assert "it failed (line 2 of the candidate)" in output
    assert "❱ 2 os.system('x')" in output


def test_show_writes_a_trace(run, stored, tmp_path):
    outcome = run("show", "1", "--trace", "trace.json")
    assert (outcome.stdout, "ui.perfetto.dev" in outcome.stderr) == ("", True)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
