"""`harness evaluate a.py b.py --problem P`: several programs for one problem in one command."""

from __future__ import annotations

import json

import pytest

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
