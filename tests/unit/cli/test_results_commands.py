"""The browsing commands, run the way a user runs them: `harness results`, `harness leaderboard`, `harness show`."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import pytest
import typer
from typer.testing import CliRunner

from harness.cli.evaluate import _print_failures, _print_reason
from harness.cli.leaderboard import leaderboard
from harness.cli.main import run_command
from harness.cli.panels import expand_panels
from harness.cli.results import results
from harness.cli.show import show
from harness.domain import BaselineResult, BuildSummary, Finding, UsageError, Work
from harness.pipeline.evaluations import EvaluationReport
from harness.store.results import ResultStore, StoredEvaluation

SOURCE = "class ModelNew:\n    pass  # ü\n"


def read_lines(text):
    """The records of JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs one command line in an empty working folder; its exceptions pass through."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    for command in (results, leaderboard, show):
        app.command()(expand_panels(command))

    def run_line(*arguments):
        outcome = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.stderr
        return outcome

    return run_line


@pytest.fixture
def stored(tmp_path, evaluation_of):
    build = BuildSummary(
        keys=("k",), cached=True, duration_s=0.0, strategy="plain", log="\n".join(f"line {n}" for n in range(60))
    )
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0, problem="softmax", extra={"build": build}), SOURCE)
        store.record(evaluation_of("correct", 3.0, problem="conv", model="model-b", candidate_digest="d" * 16))
        store.record(evaluation_of("no_code", problem="softmax", sample=1, device="none", candidate_digest=""))
        store.record(evaluation_of("timeout", problem="softmax", workload="small"), SOURCE)


def test_compiler_finding_is_labelled_a_warning_once(capsys, evaluation_of):
    messages = {"lanes": "cuda.cu:17: warning: reads an undefined lane", "clock": "too short to be timed"}
    findings = tuple(Finding(check=check, severity="warning", message=text) for check, text in messages.items())
    _print_reason(StoredEvaluation(id=1, evaluation=evaluation_of("correct", 2.0, extra={"findings": findings})), "")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["cuda.cu:17: warning: reads an undefined lane", "warning: too short to be timed"]


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


@pytest.fixture
def on_two_gpus(tmp_path, evaluation_of):
    """One sample evaluated on two kinds of GPU that are both cuda:0 of their host."""
    with ResultStore.open(tmp_path / "results") as store:
        for gpu, speedup in (("NVIDIA A100", 2.0), ("NVIDIA H100", 4.0)):
            environment = (("cpu", "Some CPU"), ("gpu", gpu))
            extra = {"environment": environment}
            store.record(evaluation_of("correct", speedup, device="cuda:0", language="cuda", extra=extra), SOURCE)


def test_the_leaderboard_keeps_kinds_of_gpu_apart(run, on_two_gpus):
    records = read_lines(run("leaderboard", "--json").stdout)
    expected = [("NVIDIA H100", 4.0), ("NVIDIA A100", 2.0)]
    assert [(row["chip"], round(row["geometric_mean_speedup"], 6)) for row in records] == expected
    lines = csv.DictReader(StringIO(run("leaderboard", "--csv").stdout))
    assert [(line["chip"], round(float(line["geometric_mean_speedup"]), 6)) for line in lines] == expected
    for option in ((), ("--markdown",)):
        text = run("leaderboard", *option).stdout
        assert [text.count(f"({chip})") for chip, _ in expected] == [1, 1]


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
    with pytest.raises(UsageError, match=r"unknown column 'sped'; choose among id, run"):
        run("results", "--columns", "id,sped")
    with pytest.raises(UsageError, match=r"unknown outcome 'corect': did you mean correct\?"):
        run("results", "--outcome", "corect")
    with pytest.raises(UsageError, match="cannot sort by 'sped'"):
        run("results", "--sort", "sped")
    with pytest.raises(UsageError, match="--csv and --json exclude each other"):
        run("results", "--csv", "--json")


def test_without_results_a_sentence_says_how_to_get_some(run, tmp_path):
    for command in ("results", "leaderboard"):
        assert "No evaluations in results yet: `harness run" in run(command).stdout
        assert read_lines(run(command, "--json").stdout) == []
    assert not (tmp_path / "results").exists()


def test_filters_that_match_nothing_say_so(run, stored):
    assert run("results", "--run", "nothing").stdout == "No run 'nothing' in results/harness.db; evaluated were demo.\n"
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
    with pytest.raises(UsageError, match=r"unknown workload 'ful': did you mean full\?"):
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


def test_the_leaderboard_ranks_as_table_json_csv_and_markdown(run, stored):
    assert "core, full workload: cpp on cpu against eager" in run("leaderboard").stdout
    options = ("--workload", "full")
    (first, second) = read_lines(run("leaderboard", "--json", *options).stdout)
    assert (first["model"], first["correct"]) == ("model-b", 1.0)
    assert (second["model"], second["correct"], second["samples"]) == ("model-a", 0.5, 2)
    lines = list(csv.DictReader(StringIO(run("leaderboard", "--csv", *options).stdout)))
    assert [line["model"] for line in lines] == ["model-b", "model-a"]
    assert "| model-b | plain | cpp |" in run("leaderboard", "--markdown").stdout


def test_choosing_a_device_does_not_leave_out_samples_without_code(run, stored):
    options = ("--device", "cpu", "--model", "model-a", "--workload", "full")
    (row,) = read_lines(run("leaderboard", "--json", *options).stdout)
    assert (row["device"], row["correct"], row["outcomes"]) == ("cpu", 0.5, {"no_code": 1, "correct": 1})


@pytest.fixture
def whose_work(tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        for sample, own in enumerate((0.9, 0.2, None)):
            shares = None if own is None else {"custom": own, "torch": 1 - own, "library": 0.0, "other": 0.0}
            work = shares and Work(**shares, without_custom="changed")
            store.record(evaluation_of("correct", 2.0, sample=sample, extra={"work": work}))


def test_option_filters_the_listing_by_custom_kernels(run, whose_work):
    assert [record["id"] for record in read_lines(run("results", "--json", "--own-kernels", "0.5").stdout)] == [1]
    assert "1 evaluation." in run("results", "--own-kernels", "0.5").stdout
    assert "matches all filters; remove one" in run("results", "--own-kernels", "1").stdout


def test_leaderboard_counts_only_custom_kernels_if_asked_and_says_so(run, whose_work):
    (row,) = read_lines(run("leaderboard", "--json", "--own-kernels", "0.5").stdout)
    assert (row["correct"], row["not_own"], row["outcomes"]) == (pytest.approx(1 / 3), 2, {"correct": 3})
    assert "2 correct candidates left out" in " ".join(run("leaderboard", "--own-kernels", "0.5").stdout.split())
    assert read_lines(run("leaderboard", "--json").stdout)[0]["correct"] == 1.0


def test_pass_at_k_is_optional_and_too_large_k_is_an_error(run, stored):
    (row,) = read_lines(run("leaderboard", "--json", "--model", "model-a", "--workload", "full", "-k", "2").stdout)
    assert row["at_k"] == [{"k": 2, "correct": 1.0, "fast_1": 1.0}]
    with pytest.raises(UsageError, match="@3 needs at least 3"):
        run("leaderboard", "-k", "3")


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


@pytest.mark.parametrize("command", ["results", "leaderboard", "show"])
def test_help_has_an_example(run, command):
    assert f"harness {command} " in run(command, "--help").stdout


def test_importing_the_commands_imports_nothing_heavy():
    check = (
        "import sys, harness.cli.results, harness.cli.leaderboard, harness.cli.show, harness.cli.tools\n"
        "print({'torch', 'pandas', 'numpy', 'scipy', 'openai', 'sqlite3', 'mcp', 'pydantic'} & set(sys.modules))"
    )
    outcome = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert outcome.stdout == "set()\n"


def test_where_filters_by_an_expression(run, stored):
    condition = 'outcome == "correct" and speedup > 2.5'
    assert [record["id"] for record in read_lines(run("results", "--json", "--where", condition).stdout)] == [2]
    with pytest.raises(UsageError, match=r"unknown column 'sped' \(did you mean speedup\?\); columns: id, run"):
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


def test_show_names_and_marks_the_line_that_a_finding_points_at(run, tmp_path, evaluation_of):
    finding = Finding(check="exception", severity="fatal", message="it failed", evidence='File "candidate.py", line 2')
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("rejected", extra={"findings": (finding,)}), "import os\nos.system('x')\n")
    output = run("show", "1").stdout
    assert "it failed (line 2 of the candidate)" in output
    assert "❱ 2 os.system('x')" in output


@pytest.mark.parametrize("command", ["results", "leaderboard"])
def test_filters_that_nothing_matches_name_what_there_is_and_exit_with_0(command, run, stored):
    assert "No model 'nosuch' in results/harness.db; evaluated were" in run(command, "--model", "nosuch").stdout
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
        (["run", "--workload", "smal"], "'smal' is not one of full, small, reduced. Did you mean small?"),
        (["evaluate", "--fidelity", "Quik"], "Did you mean quick?"),
        (["generate", "--language", "tritn"], "Did you mean triton?"),
        (["evaluate", "--workload", "7"], "'7' is not one of full, small, reduced."),
    ],
)
def test_invalid_choice_is_an_error_with_the_nearest_one(arguments, message, capsys):
    assert run_command(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_candidate_given_as_a_file_is_listed_and_not_ranked(run, stored, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 9.0, run="file", model="kernel.py", prompt="-"), SOURCE)
    assert {row["model"] for row in read_lines(run("leaderboard", "--json").stdout)} == {"model-a", "model-b"}
    assert "kernel.py" in run("results").stdout


def test_where_only_files_were_evaluated_the_leaderboard_says_so(run, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 9.0, run="file", model="kernel.py", prompt="-"), SOURCE)
        store.record(evaluation_of("correct", 9.0, run="improve-kernel", prompt="plain, from a file"), SOURCE)
    assert "only programs that were given as files" in run("leaderboard").stdout


def test_leaderboard_names_different_problems_and_ranks_over_common_ones(run, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0, problem="softmax", model="model-a"), SOURCE)
        store.record(evaluation_of("wrong_value", problem="conv", model="model-a"), SOURCE)
        store.record(evaluation_of("wrong_value", problem="softmax", model="model-b", run="other"), SOURCE)
    note = "different problems (1 to 2, 1 in common)"
    assert note in " ".join(run("leaderboard").stdout.split())
    for option in ("--json", "--csv", "--markdown"):
        assert note in run("leaderboard", option).stderr
    common = run("leaderboard", "--common", "--json")
    assert [(row["model"], row["problems"], row["correct"]) for row in read_lines(common.stdout)] == [
        ("model-a", 1, 1.0),
        ("model-b", 1, 0.0),
    ]
    assert not common.stderr


def test_a_leaderboard_without_a_common_problem_says_so(run, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0, problem="softmax", model="model-a"), SOURCE)
        store.record(evaluation_of("correct", 2.0, problem="conv", model="model-b", run="other"), SOURCE)
    assert "(1 each, none in common)" in " ".join(run("leaderboard").stdout.split())
    assert "No problem is common to all models of a table" in run("leaderboard", "--common").stdout


@pytest.fixture
def with_compile(tmp_path, evaluation_of):
    """Twice as fast as eager, and slower than compile."""
    further = tuple(
        BaselineResult(name=name, timing=evaluation_of(speedup=speedup, baseline=name).timing, reason=reason)
        for name, speedup, reason in (("compile-max-autotune", 0.9, ""), ("library", None, "its outputs are wrong"))
    )
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0, extra={"further": further}), SOURCE)


def test_tables_name_a_baseline_that_is_faster_than_the_first(run, with_compile):
    for command in ("results", "leaderboard"):
        assert "0.90x of compile-max-autotune" in " ".join(run(command).stdout.split())
    shown = " ".join(run("show", "1").stdout.split())
    assert "0.90x [0.80, 1.00] of compile-max-autotune, the fastest of 2 baselines" in shown
    assert "library: its outputs are wrong" in shown


def test_results_and_leaderboard_rank_against_another_baseline(run, with_compile):
    columns = ("--json", "--columns", "speedup,baseline,over_fastest")
    (record,) = read_lines(run("results", "--against", "compile-max-autotune", *columns).stdout)
    assert record == {"speedup": 0.9, "baseline": "compile-max-autotune", "over_fastest": None}
    (ranked,) = read_lines(run("leaderboard", "--against", "compile-max-autotune", "--json").stdout)
    assert (ranked["baseline"], ranked["geometric_mean_speedup"]) == ("compile-max-autotune", 0.9)
    with pytest.raises(UsageError, match="nothing was timed against 'library'"):
        run("leaderboard", "--against", "library")


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


def test_show_writes_a_trace(run, stored, tmp_path):
    outcome = run("show", "1", "--trace", "trace.json")
    assert (outcome.stdout, "ui.perfetto.dev" in outcome.stderr) == ("", True)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
