"""`harness evaluate a.py b.py --problem P`: several programs for one problem in one command."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from harness.pipeline.evaluate import sample_tasks
from harness.pipeline.options import EvaluateOptions

PROGRAM = """import time
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        BODY
"""
GOOD, BAD = "return a + b", "return a - b"


@pytest.fixture
def evaluate(tmp_path, tiny_suite, call_harness):
    """Evaluates programs of the given bodies without timing them, in the order of the arguments."""

    def run(*args, **bodies):
        for name, body in bodies.items():
            (tmp_path / f"{name}.py").write_text(PROGRAM.replace("BODY", body))
        fixed = ["--problem", tiny_suite / "add.py", "--language", "torch", "--workload", "full"]
        return call_harness(["evaluate", *args, *fixed])

    return run


def list_places(stdout):
    """Read the places and files of the ranking."""
    rows = [line.split() for line in stdout.splitlines()]
    return [(row[0], row[2]) for row in rows if len(row) > 3 and row[2].endswith(".py")]


def test_files_are_ranked_until_the_first_failure(evaluate):
    done = evaluate("a.py", "bad.py", "late.py", "a.py", "-x", "--no-time", a=GOOD, bad=BAD, late="return b + a")
    assert done.returncode == 1, done.stderr
    assert list_places(done.stdout) == [("1", "a.py"), ("-", "bad.py")]
    assert "1 not evaluated after the first that is not correct (-x)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    again = evaluate("bad.py", "--no-time"), evaluate("bad.py", "--no-time", "--exit-zero")  # evaluated before
    assert [one.returncode for one in again] == [1, 0]


@pytest.mark.slow
def test_last_failed_evaluates_again_what_failed_before_it_was_mended(evaluate):
    args = ("a.py", "b.py", "c.py", "--no-time", "--json")
    assert evaluate(*args, a=GOOD, b=BAD, c=BAD).returncode == 1
    done = evaluate(*args, "--last-failed", b=GOOD)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["model"], one["outcome"]) for one in found] == [("b.py", "correct"), ("c.py", "wrong_value")]
    assert [one["model"] for one in map(json.loads, evaluate(*args, "--last-failed").stdout.splitlines())] == ["c.py"]
    assert evaluate("a.py", "--no-time", "--last-failed").returncode == 0


@pytest.mark.slow
def test_close_files_are_compared_in_pairs(evaluate):
    sleeping = f"time.sleep(0.02)\n        {GOOD}"
    done = evaluate("a.py", "b.py", "slow.py", a=sleeping, b=f"{sleeping} + 0", slow=sleeping.replace("02", "2"))
    assert done.returncode == 0, done.stdout
    assert [file for _, file in list_places(done.stdout)][-1] == "slow.py"
    assert done.stdout.replace("\n", "").count("in pairs") == 1


def test_a_file_without_its_problem_is_named(call_harness, tmp_path):
    (tmp_path / "a.py").write_text(PROGRAM.replace("BODY", GOOD))
    done = call_harness(["evaluate", "a.py"])
    assert done.returncode == 2
    assert "a.py is a file: add --problem NAME" in done.stderr


def test_one_problem_of_a_run_is_evaluated(call_harness, tmp_path):
    asked = ["--provider", "recorded", "--language", "cpp", "--run", "demo", "--generated-dir", tmp_path / "runs"]
    call_harness(["generate", *asked, "--problem", "softmax", "--problem", "rms_norm"])
    options = EvaluateOptions(generated_dir=tmp_path / "runs")
    for problem in ("softmax", "core/softmax"):
        assert {task.problem.name for task in sample_tasks(["demo"], options, problem)} == {"softmax"}
    done = call_harness(["evaluate", "demo", "--problem", "llm/softmax", "--generated-dir", tmp_path / "runs"])
    assert done.returncode == 2
    assert "no answer to problem 'llm/softmax' in demo; did you mean softmax?" in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["a.py", "--watch"], "--watch needs files and --problem"),
        (["a.py", "--watch", "--problem", "p.py", "-x"], "excludes -x"),
        (["absent.py", "--watch", "--problem", "p.py"], "cannot watch absent.py: there is no such file"),
        (["-", "--watch", "--problem", "p.py"], "cannot watch -"),
    ],
)
def test_watching_needs_existing_files_and_no_selection(args, words, call_harness):
    done = call_harness(["evaluate", *args])
    assert done.returncode == 2
    assert words in done.stderr


@pytest.fixture
def watch(tmp_path, tiny_suite, start_harness):
    """Starts `--watch` of a.py, and returns the process and a function that waits for a line with some words."""
    (tmp_path / "a.py").write_text(PROGRAM.replace("BODY", GOOD))
    args = ["evaluate", "a.py", "--watch", "--problem", tiny_suite / "add.py", "--language", "torch", "--no-time"]
    process = start_harness(args, env={"PYTHONUNBUFFERED": "1"}, stderr=subprocess.STDOUT)

    def wait_for(words):
        for line in process.stdout:
            if words in line:
                return
        raise AssertionError(f"ended before {words!r}")

    return process, wait_for


@pytest.mark.slow
def test_a_watched_file_is_evaluated_at_each_change_until_ctrl_c(watch, tmp_path):
    (process, wait_for), file = watch, tmp_path / "a.py"
    wait_for("a.py: outputs correct")
    wait_for("a.py: correct")
    file.write_text(PROGRAM.replace("BODY", BAD))
    wait_for("a.py: wrong_value")
    file.unlink()
    wait_for("a.py: cannot be read: waiting for it")
    file.write_text("def f(:\n")
    wait_for("a.py: load_error")
    file.write_text("")
    wait_for("a.py is empty")
    (tmp_path / "new.py").write_text(PROGRAM.replace("BODY", f"{GOOD} + 0"))
    (tmp_path / "new.py").rename(file)
    wait_for("a.py: correct")
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stdout.read().splitlines()
    assert rest[-1] == "harness: interrupted; everything finished before is kept"
    assert len(rest) == 2  # after "Details: ..."
    assert process.wait() == 130
    assert (tmp_path / "results" / "evaluations.csv").is_file()


@pytest.mark.slow
def test_a_change_of_the_problem_evaluates_the_watched_file_again(watch, tiny_suite):
    process, wait_for = watch
    wait_for("a.py: correct")
    problem = (tiny_suite / "add.py").read_text()
    (tiny_suite / "add.py").write_text("class Model(:\n")
    wait_for("a.py: ")
    assert process.poll() is None
    (tiny_suite / "add.py").write_text(problem.replace("a + b", "a * b"))
    wait_for("a.py: wrong_value")
