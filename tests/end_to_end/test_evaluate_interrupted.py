"""`harness evaluate` ended in the middle, by Ctrl-C or by force: what was finished is kept, nothing of it is left
running, and the same command does the rest. Also two of them at once on one results folder."""

import fcntl
import json
import os
import signal
import sqlite3
import time
import uuid

import pytest

HEAD = "import torch\nfrom torch import nn\n"
GOOD = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
HANGING = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        while True: pass\n"
# Keeps the compiler busy for minutes, in little memory.
SLOW_SOURCE = """
constexpr long count() { long s = 0; for (long i = 0; i < 2000000000; ++i) s += i % 7; return s; }
long result[count() % 3 + 1];
"""
SLOW_FLAGS = ["-fconstexpr-ops-limit=1000000000000", "-fconstexpr-loop-limit=2147483647"]
SLOW_BUILD = f"""{HEAD}from torch.utils.cpp_extension import load_inline
load_inline("slow", cpp_sources={SLOW_SOURCE!r}, extra_cflags={SLOW_FLAGS!r}, no_implicit_headers=True)

class ModelNew(nn.Module):
    pass
"""


def variant(number):
    """A right candidate whose text is its own."""
    return f"# {number}\n{GOOD}"


def stored_outcomes(results_dir):
    """Sample and outcome of every stored evaluation, read as any program would; {} while there is no database."""
    if not (results_dir / "harness.db").exists():
        return {}
    connection = sqlite3.connect(f"file:{results_dir}/harness.db?mode=ro", uri=True)
    try:
        return dict(connection.execute("SELECT sample, outcome FROM evaluations").fetchall())
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()


def wait_until(condition, what, timeout_s=300):
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not happen within {timeout_s} s"
        time.sleep(0.05)


@pytest.fixture
def marker():
    """A value that every process of one command carries in its environment, the isolated ones too."""
    return uuid.uuid4().hex


def interrupt(process, number):
    """What a terminal does on Ctrl-C: the signal goes to every process of the group."""
    os.killpg(process.pid, number)
    return process.communicate(timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl_c", "killed"])
def test_ended_while_evaluating_it_keeps_what_is_finished_and_goes_on(
    number, tmp_path, tiny_suite, write_run, start_harness, call_harness, processes_with, marker
):
    write_run("runs", [variant(0), variant(1), HANGING, variant(3)])
    args = ["evaluate", "runs", "--problems-dir", tiny_suite.parent, "--no-time"]
    process = start_harness([*args, "--call-timeout", "600"], env={"NVIDIA_TEST_MARKER": marker})
    wait_until(lambda: stored_outcomes(tmp_path / "results"), "the first verdict")
    _, stderr = interrupt(process, number)
    kept = stored_outcomes(tmp_path / "results")  # of those that were built before the one that hangs
    assert set(kept.values()) == {"correct"}
    wait_until(lambda: processes_with(marker, "environ") == [], "the end of all processes")
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted; everything finished before is kept" in stderr
        assert "Traceback" not in stderr
        assert (tmp_path / "results" / "evaluations.csv").read_text().count("correct") == len(kept)

    finished = call_harness([*args, "--first-call-timeout", "1.5"])
    assert finished.returncode == 0, finished.stderr
    assert f"{len(kept)} already evaluated" in finished.stdout
    outcomes = stored_outcomes(tmp_path / "results")
    assert outcomes == {0: "correct", 1: "correct", 2: "timeout", 3: "correct"}


@pytest.mark.slow
@pytest.mark.parametrize("before", [[variant(0)], []], ids=["ahead", "in_turn"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl_c", "killed"])
def test_ended_while_building_it_leaves_no_compiler_and_goes_on(
    number, before, tmp_path, tiny_suite, write_run, start_harness, call_harness, processes_with, marker, needs_compiler
):
    """The candidates before it are evaluated while it is built ahead; alone it is built in its evaluation."""
    write_run("runs", [*before, f"# {number}\n{SLOW_BUILD}"])
    cache = tmp_path / "cache"
    args = ["evaluate", "runs", "--problems-dir", tiny_suite.parent, "--no-time", "--cache-dir", cache]
    process = start_harness(args, env={"NVIDIA_TEST_MARKER": marker})
    compiling = lambda: set(processes_with("cc1plus")) & set(processes_with(marker, "environ"))  # noqa: E731
    wait_until(compiling, "a compiler")
    _, stderr = interrupt(process, number)
    wait_until(lambda: processes_with(marker, "environ") == [], "the end of all processes")
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "Traceback" not in stderr
        assert not list(cache.glob("build-*"))

    finished = call_harness([*args, "--build-timeout", "2"])
    assert finished.returncode == 0, finished.stderr
    expected = dict(enumerate([*("correct" for _ in before), "build_error"]))
    assert stored_outcomes(tmp_path / "results") == expected


WITH_HEADERS = f"""{HEAD}from torch.utils.cpp_extension import load_inline
load_inline("own", cpp_sources="torch::Tensor own(torch::Tensor x) {{ return x; }}", functions=["own"])

class ModelNew(nn.Module):
    pass
"""
ENDLESS_COMPILER = """#!/bin/sh
case " $* " in *" -c "*|*" -x "*) sleep 86399;; *) exec c++ "$@";; esac
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_compilers_of_headers_end_with_the_command_and_free_their_locks(
    number, tmp_path, tiny_suite, write_run, start_harness, processes_with, marker, needs_compiler
):
    write_run("runs", [WITH_HEADERS])
    compiler, cache = tmp_path / "tools" / "c++", tmp_path / "cache"
    compiler.parent.mkdir()
    compiler.write_text(ENDLESS_COMPILER)
    compiler.chmod(0o755)
    args = ["evaluate", "runs", "--problems-dir", tiny_suite.parent, "--no-time", "--cache-dir", cache]
    process = start_harness(args, env={"NVIDIA_TEST_MARKER": marker, "CXX": str(compiler)})
    compiling = lambda: set(processes_with("86399")) & set(processes_with(marker, "environ"))  # noqa: E731
    wait_until(lambda: len(compiling()) > 1, "two compilers, one for headers and one beside it")
    process.send_signal(number)
    wait_until(lambda: processes_with(marker, "environ") == [], "the end of all processes", timeout_s=10)
    for path in (*cache.glob("locks/*"), *cache.glob("kits/*/lock")):
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.slow
def test_two_commands_at_once_on_one_results_folder_both_keep_their_verdicts(
    tmp_path, tiny_suite, write_run, start_harness
):
    args = ["--problems-dir", tiny_suite.parent, "--no-time", "--json"]
    for run in ("one", "two"):
        write_run(run, [variant(f"{run} {number}") for number in range(4)])
    processes = [start_harness(["evaluate", run, *args]) for run in ("one", "two")]
    for process in processes:
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr
        assert [row["outcome"] for row in [json.loads(line) for line in stdout.splitlines()]] == ["correct"] * 4
    with sqlite3.connect(tmp_path / "results" / "harness.db") as connection:
        counts = connection.execute("SELECT run, count(*) FROM evaluations GROUP BY run").fetchall()
    connection.close()
    assert counts == [("one", 4), ("two", 4)]
    assert (tmp_path / "results" / "evaluations.csv").read_text().count("correct") == 8


def count_verdicts(results_dir):
    """How many evaluations of each sample were ever stored, by sample and outcome."""
    with sqlite3.connect(results_dir / "harness.db") as connection:
        rows = connection.execute("SELECT sample, outcome, count(*) FROM evaluations GROUP BY sample, outcome")
        counts = {(sample, outcome): count for sample, outcome, count in rows}
    connection.close()
    return counts


@pytest.mark.slow
def test_two_commands_at_once_on_one_run_evaluate_each_candidate_once(tmp_path, tiny_suite, write_run, start_harness):
    write_run("runs", [variant(number) for number in range(12)])
    args = ["evaluate", "runs", "--problems-dir", tiny_suite.parent, "--no-time"]
    finished = [(process.communicate(timeout=200), process) for process in [start_harness(args), start_harness(args)]]
    for (_, stderr), process in finished:
        assert process.returncode == 0, stderr
    assert count_verdicts(tmp_path / "results") == {(number, "correct"): 1 for number in range(12)}
    told = [int(line.split()[0]) for (out, _), _ in finished for line in out.splitlines() if "another process" in line]
    before = [
        int(line.split()[0]) for (out, _), _ in finished for line in out.splitlines() if "already evaluated" in line
    ]
    assert sum(told) + sum(before) == 12, "each process tells of what the other one did"


@pytest.mark.slow
def test_task_of_a_killed_command_is_evaluated_by_another_command(
    tmp_path, tiny_suite, write_run, start_harness, processes_with, marker
):
    write_run("runs", [variant(0), HANGING, *map(variant, range(2, 6))])
    args = ["evaluate", "runs", "--problems-dir", tiny_suite.parent, "--no-time"]
    first = start_harness([*args, "--call-timeout", "300"], env={"NVIDIA_TEST_MARKER": marker})
    wait_until(lambda: stored_outcomes(tmp_path / "results"), "the first verdict")
    with (tmp_path / "second.err").open("w") as words:
        second = start_harness([*args, "--first-call-timeout", "1.5"], stderr=words)
    wait_until(
        lambda: "another process evaluates some" in (tmp_path / "second.err").read_text(), "a note of the second"
    )
    assert 1 not in stored_outcomes(tmp_path / "results"), "the first one is at the candidate that hangs, or will be"
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    second.communicate(timeout=120)
    assert second.returncode == 0, (tmp_path / "second.err").read_text()
    expected = {(number, "timeout" if number == 1 else "correct"): 1 for number in range(6)}
    assert count_verdicts(tmp_path / "results") == expected
    wait_until(lambda: processes_with(marker, "environ") == [], "the end of all processes", timeout_s=10)
