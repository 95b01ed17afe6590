"""`harness leaderboard`, run the way a user runs it, and what it shares with `harness results`."""

import csv
from io import StringIO

import pytest
from browsing import SOURCE, read_lines

from harness.domain import BaselineResult, UsageError, Work
from harness.store.results import ResultStore


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
