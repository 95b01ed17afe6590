"""`harness results`, run the way a user runs it, and what all browsing commands do."""

import csv
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import pytest
from browsing import SOURCE, read_lines

from harness.cli.evaluate import _print_failures, _print_reason
from harness.cli.main import run_command
from harness.domain import Finding, UsageError
from harness.pipeline.evaluations import EvaluationReport
from harness.store.results import ResultStore, StoredEvaluation


def test_compiler_finding_is_labelled_a_warning_once(capsys, evaluation_of):
    messages = {"lanes": "cuda.cu:17: warning: reads an undefined lane", "clock": "too short to be timed"}
    findings = tuple(Finding(check=check, severity="warning", message=text) for check, text in messages.items())
    _print_reason(StoredEvaluation(id=1, evaluation=evaluation_of("correct", 2.0, extra={"findings": findings})), "")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["cuda.cu:17: warning: reads an undefined lane", "warning: too short to be timed"]


def test_a_time_that_is_not_ranked_is_said_with_the_reason(capsys, evaluation_of):
    correct = evaluation_of("correct", 2.0)
    for verdict, is_said in (("unreliable", True), ("faster", False)):
        timed = replace(correct, timing=replace(correct.timing, verdict=verdict))
        _print_reason(StoredEvaluation(id=1, evaluation=timed), "")
        text = " ".join(capsys.readouterr().out.split())
        assert ("is correct, but its time is unreliable and not ranked; measured 2.00x" in text) == is_said


def test_a_finding_that_the_message_quotes_is_said_once_with_its_line(capsys, evaluation_of):
    quoted = Finding(
        check="launch", severity="warning", message="cuda.cu:2: error: 2048 threads", evidence="in kernel k"
    )
    extra = {"findings": (quoted,), "message": "cuda.cu:2: error: 2048 threads; RuntimeError: invalid argument"}
    source = 'x = 1\nCUDA = """\n__global__ void k() {}\n"""\n'
    _print_reason(StoredEvaluation(id=1, evaluation=evaluation_of("runtime_error", extra=extra)), source)
    text = capsys.readouterr().out
    assert text.count("2048 threads") == 1
    assert "line 3 of the candidate: __global__ void k() {}" in text


def test_kernel_error_is_printed_before_its_wrong_values(capsys, evaluation_of):
    cause = Finding(check="shared_race", severity="warning", message="cuda.cu:1: error: race", evidence="in kernel k")
    wrong = Finding(check="correctness", severity="fatal", message="all elements wrong")
    extra = {"findings": (wrong, cause), "message": "output: all elements wrong"}
    source = 'CUDA = """__global__ void k() {}"""\n'
    _print_reason(StoredEvaluation(id=1, evaluation=evaluation_of("wrong_value", extra=extra)), source)
    assert capsys.readouterr().out.splitlines()[:3] == [
        "cuda.cu:1: error: race",
        'line 1 of the candidate: CUDA = """__global__ void k() {}"""',
        "wrong_value: output: all elements wrong",
    ]


def test_consequences_are_printed_after_the_quoted_cause(capsys, evaluation_of):
    cause, race = (
        Finding(check=check, severity="warning", message=f"cuda.cu:9: error: {text}", evidence="in kernel k")
        for check, text in (("out_of_bounds", "writes beyond y"), ("global_race", "race"))
    )
    extra = {"findings": (race, cause), "message": f"{cause.message}; IllegalAccess: CUDA error"}
    _print_reason(StoredEvaluation(id=1, evaluation=evaluation_of("runtime_error", extra=extra)), "")
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("runtime_error: cuda.cu:9: error: writes beyond y")
    assert second == race.message


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), [1, 2, 3, 4]),
        (("--model", "*-b"), [2]),
        (("--problem", "softmax", "--workload", "full"), [1, 3]),
        (("--outcome", "correct", "--sort", "-speedup"), [2, 1]),
        (("--device", "none"), [3]),
        (("--run", "nothing"), []),
        (("--limit", "2"), [3, 4]),
        (("--limit", "2", "--sort", "id"), [1, 2]),
    ],
)
def test_results_filters_and_sorts(run, stored, options, ids):
    assert [record["id"] for record in read_lines(run("results", "--json", *options).stdout)] == ids


def test_results_prints_the_same_as_csv(run, stored):
    lines = list(csv.DictReader(StringIO(run("results", "--csv", "--columns", "id,outcome,speedup").stdout)))
    assert lines[0] == {"id": "1", "outcome": "correct", "speedup": "2.0"}
    assert [line["outcome"] for line in lines] == ["correct", "correct", "no_code", "timeout"]


def test_results_prints_chosen_columns_as_json(run, stored):
    records = read_lines(run("results", "--json", "--columns", "id,outcome,speedup").stdout)
    assert records[0] == {"id": 1, "outcome": "correct", "speedup": 2.0}
    assert records[3] == {"id": 4, "outcome": "timeout", "speedup": None}


def test_results_prints_a_table_that_says_how_many_there_are(run, stored):
    output = run("results", "--limit", "3").stdout
    assert "softmax" in output
    assert "Newest 3 of 4 evaluations; --limit 0 shows all." in output
    assert "4 evaluations." in run("results", "--limit", "0").stdout


def test_columns_asked_for_are_all_there_however_narrow_the_terminal(run, stored):
    header = run("results", "--columns", "all").stdout.splitlines()[0]
    assert header.split()[:4] == ["id", "run", "problem", "sample"]
    assert "hardware" in header


def test_an_unknown_column_or_outcome_is_an_error_that_helps(run, stored):
    with pytest.raises(UsageError, match=r"unknown column 'sped'; did you mean speedup\? choose among id, run"):
        run("results", "--columns", "id,sped")
    with pytest.raises(UsageError, match=r"unknown outcome 'corect'; did you mean correct\?"):
        run("results", "--outcome", "corect")
    with pytest.raises(UsageError, match="cannot sort: unknown column 'sped'; did you mean speedup"):
        run("results", "--sort", "sped")
    with pytest.raises(UsageError, match="--csv and --json exclude each other"):
        run("results", "--csv", "--json")


def test_without_results_a_sentence_says_how_to_get_some(run, tmp_path):
    for command in ("results", "leaderboard"):
        assert "No evaluations in results yet: `harness run" in run(command).stdout
        assert read_lines(run(command, "--json").stdout) == []
    assert not (tmp_path / "results").exists()


def test_filters_that_match_nothing_say_so(run, stored):
    assert run("results", "--run", "nothing").stdout == "No run 'nothing' in results/harness.db; known: demo.\n"
    for options in (("--csv",), ("--json",), ("--group", "model", "--json")):
        assert "No run 'nothing'" in run("results", "--run", "nothing", *options).stderr


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ('model == "model-c"', "No model 'model-c' in results/harness.db; did you mean model-b?"),
        ('problem in ("softmaks", "relu")', "No problem 'softmaks' in results/harness.db; did you mean softmax?"),
        ('outcome == "correct" and speedup > 9', "No evaluation in results/harness.db matches all filters"),
    ],
)
def test_a_condition_that_matches_nothing_names_the_value_that_does_not_occur(run, stored, condition, reason):
    assert reason in run("results", "--where", condition).stdout


@pytest.mark.parametrize("command", ["results", "leaderboard"])
def test_an_impossible_value_of_a_filter_is_an_error(run, stored, command):
    with pytest.raises(UsageError, match=r"unknown workload 'ful'; did you mean full\?"):
        run(command, "--workload", "ful")


def test_equal_failure_messages_are_printed_once_with_the_show_command(evaluation_of, capsys):
    failed = {"message": "SyntaxError: bad\n  line 2"}
    outcomes = [("load_error", failed), ("load_error", failed), ("correct", {}), ("harness_error", {"message": "full"})]
    made = [
        StoredEvaluation(id=number, evaluation=evaluation_of(outcome, extra=extra))
        for number, (outcome, extra) in enumerate(outcomes, start=1)
    ]
    _print_failures(EvaluationReport(evaluations=made))
    printed = capsys.readouterr()
    assert printed.out == "load_error on add: SyntaxError: bad (harness show 1)\n"
    assert printed.err == "harness_error on add: full\n"


def test_a_long_message_does_not_widen_the_table_without_limit(run, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("timeout", extra={"message": "x" * 400}))
    lines = run("results", "--columns", "id,problem,model,outcome,message").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "x" * 400 in run("results", "--columns", "id,message", "--csv").stdout


def test_settings_for_generate_do_not_hide_results(run, stored, monkeypatch):
    monkeypatch.setenv("HARNESS_MODEL", "somebody-else")
    monkeypatch.setenv("HARNESS_RUN", "another")
    assert len(read_lines(run("results", "--json").stdout)) == 4


def test_the_results_folder_comes_from_the_environment(run, stored, monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_RESULTS_DIR", str(tmp_path / "elsewhere"))
    assert read_lines(run("results", "--json").stdout) == []


@pytest.mark.parametrize("command", ["results", "leaderboard", "show"])
def test_help_has_an_example(run, command):
    assert f"harness {command} " in run(command, "--help").stdout


def test_importing_the_commands_imports_nothing_heavy():
    check = (
        "import sys, harness.cli.results, harness.cli.compare, harness.cli.show, harness.cli.serve\n"
        "print({'torch', 'pandas', 'numpy', 'scipy', 'openai', 'sqlite3', 'mcp', 'pydantic'} & set(sys.modules))"
    )
    outcome = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert outcome.stdout == "set()\n"


def test_where_filters_by_an_expression(run, stored):
    condition = 'outcome == "correct" and speedup > 2.5'
    assert [record["id"] for record in read_lines(run("results", "--json", "--where", condition).stdout)] == [2]
    with pytest.raises(UsageError, match=r"unknown column 'sped'; did you mean speedup\? choose among id, run"):
        run("results", "--where", "sped > 1")


def test_group_counts_evaluations(run, stored):
    lines = list(csv.DictReader(StringIO(run("results", "--csv", "--group", "problem").stdout)))
    assert lines[0] == {
        "problem": "softmax",
        "evaluations": "3",
        "correct": "1",
        "correct_share": str(1 / 3),
        "timed": "1",
        "speedup": "2.0",
        "speedup_clock": "call",
    }
    assert read_lines(run("results", "--json", "--group", "model,outcome").stdout)[1]["model"] == "model-b"
    assert "33.3%" in run("results", "--group", "problem").stdout
    with pytest.raises(UsageError, match="--group prints counts"):
        run("results", "--group", "problem", "--columns", "id")


@pytest.mark.parametrize("width", ["80", "120", "200"])
def test_the_table_fits_its_terminal(run, stored, tmp_path, evaluation_of, monkeypatch, width):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("timeout", model="m" * 90, problem="p" * 90, extra={"message": "x" * 300}))
    monkeypatch.setenv("COLUMNS", width)
    for options in ((), ("--group", "model,problem,outcome")):
        lines = run("results", *options).stdout.splitlines()
        assert max(map(len, lines)) <= int(width)
    assert ("message" in run("results").stdout.splitlines()[0]) == (width == "200")


def test_parquet_keeps_types_and_missing_values(run, stored, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    run("results", "--parquet", "all.parquet", "--columns", "id,model,speedup")
    table = parquet.read_table(tmp_path / "all.parquet")
    assert [str(kind) for kind in table.schema.types] == ["int64", "string", "double"]
    assert table.to_pylist()[1:3] == [
        {"id": 2, "model": "model-b", "speedup": 3.0},
        {"id": 3, "model": "model-a", "speedup": None},
    ]
    assert [path.name for path in tmp_path.glob("*.parquet*")] == ["all.parquet"]


def test_parquet_without_pyarrow_says_what_to_install(run, stored, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pip install pyarrow"):
        run("results", "--parquet", "all.parquet")


def test_an_emulated_evaluation_has_a_line_without_a_time(run, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", device="emulated", language="cuda"))
    assert run("results").stdout.splitlines()[2].split() == [
        "1", "add", "model-a", "emulated", "full", "correct", "-"
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["results", "leaderboard"])
def test_filters_that_nothing_matches_name_what_there_is_and_exit_with_0(command, run, stored):
    assert "No model 'nosuch' in results/harness.db; known:" in run(command, "--model", "nosuch").stdout
    output = run(command, "--model", "model-b", "--problem", "softmax", "--json")
    assert "matches all filters" in output.stderr
    assert read_lines(output.stdout) == []


def test_programs_given_as_files_are_told_apart_by_name(run, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        for number, name in enumerate(("first.py", "second.py")):
            given = {"run": "file", "model": name, "prompt": "-", "candidate_digest": str(number) * 16}
            store.record(evaluation_of("correct", 9.0, problem="softmax", **given), SOURCE)
    assert "file/softmax/second.py is correct" in " ".join(run("show", "2").stdout.split())
    assert "file/softmax/first.py is correct" in " ".join(run("show", "file/softmax/first.py").stdout.split())
    assert "also evaluated: 1 (first.py, " in run("show", "file/softmax/0").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "--candidate", "absent.py", "--problem", "softmax"],
        ["extract", "absent.py"],
        ["regress", "--pins", "absent.py"],
        ["import", "absent.py", "--format", "kernelbench"],
    ],
)
def test_a_message_names_a_path_once(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command(arguments) == 2
    assert capsys.readouterr().err.count("absent.py") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--workload", "smal"], "'smal' is not one of full, small, reduced; did you mean small?"),
        (["evaluate", "--fidelity", "Quik"], "did you mean quick?"),
        (["generate", "--language", "tritn"], "did you mean triton?"),
        (["evaluate", "--workload", "7"], "'7' is not one of full, small, reduced"),
    ],
)
def test_invalid_choice_is_an_error_with_the_nearest_one(arguments, message, capsys):
    assert run_command(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_memory_and_energy_of_a_call_are_shown_and_sorted_by(run, tmp_path, evaluation_of):
    timing = evaluation_of(speedup=2.0).timing
    known = {"baseline_bytes": 3 << 20, "candidate_bytes": 5 << 20, "baseline_mj": None, "candidate_mj": 12.5}
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0), SOURCE)
        store.record(evaluation_of("correct", problem="mul", extra={"timing": replace(timing, **known)}), SOURCE)
    columns = ("--json", "--columns", "id,memory_bytes,energy_mj")
    records = read_lines(run("results", "--sort", "-memory_bytes", *columns).stdout)
    assert records == [
        {"id": 2, "memory_bytes": 5 << 20, "energy_mj": 12.5},
        {"id": 1, "memory_bytes": None, "energy_mj": None},
    ]
    shown = " ".join(run("show", "2").stdout.split())
    assert "device memory 5.0 MiB beside the inputs; the baseline 3.0 MiB" in shown
    assert "energy 12.5 mJ" in shown


def test_whole_calls_are_shown_beside_device_time_and_sorted_by(run, tmp_path, evaluation_of):
    timing = evaluation_of(speedup=2.0).timing
    timed = replace(timing, clock="device", baseline_call_us=120.0, candidate_call_us=80.0)
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0), SOURCE)
        store.record(evaluation_of("correct", problem="mul", extra={"timing": timed}), SOURCE)
        store.record(evaluation_of("suspect", problem="sub", extra={"timing": timed}), SOURCE)
    columns = ("--json", "--columns", "id,call_us,baseline_call_us,call_speedup")
    records = read_lines(run("results", "--sort", "-call_speedup", *columns).stdout)
    assert records == [
        {"id": 2, "call_us": 80.0, "baseline_call_us": 120.0, "call_speedup": 1.5},
        {"id": 1, "call_us": None, "baseline_call_us": None, "call_speedup": None},
        {"id": 3, "call_us": 80.0, "baseline_call_us": 120.0, "call_speedup": None},
    ]
    shown = " ".join(run("show", "2").stdout.split())
    assert "host work included: 120 us (eager) and 80 us, 1.50x; they do not affect the verdict." in shown, shown
    assert "Whole calls" not in run("show", "1").stdout
    (record,) = read_lines(run("show", "2", "--json").stdout)
    assert (record["call_speedup"], record["timing"]["candidate_call_us"]) == (1.5, 80.0)
