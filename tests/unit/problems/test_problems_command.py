"""`harness problems`, as typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from harness.cli.problems import problems_app
from harness.domain import UsageError
from harness.problems.watched_process import DEFAULT_LIMIT_S, set_reference_limit

GOOD = """'''Multiplies by a weight.'''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(40))
    def forward(self, x):
        return x * self.weight

rows = 4096
def get_inputs():
    return [torch.randn(rows, 40)]
def get_init_inputs():
    return []

SMALL = {"rows": 33}
TAGS = ("toy",)
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "good.py").write_text(GOOD)
    return tmp_path


def run(*arguments: str):
    app = typer.Typer()
    app.add_typer(problems_app, name="problems")
    app.callback()(lambda: None)
    return CliRunner().invoke(app, ["problems", *arguments], env={"COLUMNS": "80"}, catch_exceptions=True)


def join_lines(text: str) -> str:
    return " ".join(text.split())


def options(suites: Path) -> tuple[str, ...]:
    return ("--suite", "mine", "--problems-dir", str(suites))


def test_list_shows_shapes_of_both_workloads_and_tags(suites):
    result = run("list", *options(suites))
    assert result.exit_code == 0
    for word in ("good", "4096x40", "33x40", "toy"):
        assert word in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_long_names_leave_the_shapes_their_room(suites):
    (suites / "mine" / f"{'a_name_of_many_words_' * 4}.py").write_text(GOOD)
    result = run("list", *options(suites))
    for word in ("4096x40", "33x40", "toy"):
        assert result.stdout.count(word) == 2
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_bare_command_lists_core():
    result = run()
    assert result.exit_code == 0
    assert "conv2d_relu_bias" in result.stdout
    assert "128x64x128x128" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_list_json_is_one_record(suites):
    record = json.loads(run("list", *options(suites), "--json").stdout)
    (entry,) = record["problems"]
    assert (record["suite"], entry["name"], entry["summary"]) == ("mine", "good", "Multiplies by a weight.")
    assert entry["workloads"][1] == {"name": "small", "inputs": [{"dtype": "float32", "shape": [33, 40]}]}


def test_list_shows_a_file_that_is_no_problem_among_the_others(suites):
    (suites / "mine" / "broken.py").write_text("def get_inputs(:\n")
    result = run("list", *options(suites))
    assert result.exit_code == 0
    assert "good" in result.stdout
    assert "not a problem" in result.stdout


def test_check_admits_a_good_problem(suites):
    result = run("check", *options(suites))
    assert result.exit_code == 0
    assert "1 of 1 problems admitted" in result.stdout
    assert "settings of good: SMALL rows=33; TAGS toy" in result.stdout


LIBRARY = '''
class Library(Model):
    """one call"""
    def forward(self, x):
        return torch.mul(x, self.weight)
'''


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (("", ""), 0, "1 of 1 problems admitted"),
        (("mul", "add"), 1, "good: Library: output: "),
        (("mul", "nosuch"), 1, "good: Library: mine/good.py, line 24: forward raised"),
        (("self.weight)", "self.weight.cuda())"), 0, "1 of 1 problems admitted"),
    ],
)
def test_check_compares_the_library_call_with_the_reference(suites, change, code, words):
    (suites / "mine" / "good.py").write_text(GOOD + LIBRARY.replace(*change))
    result = run("check", *options(suites))
    assert (result.exit_code, words in join_lines(result.stdout)) == (code, True), result.stdout
    assert "Library one call (--baseline library)" in join_lines(run("show", "good", *options(suites)).stdout)


def test_check_says_that_large_sizes_were_checked_by_shapes_only(suites):
    (suites / "mine" / "good.py").write_text(GOOD.replace("rows = 4096", "rows = 1 << 30"))
    result = run("check", *options(suites))
    (full,) = (line for line in result.stdout.splitlines() if " full " in line)
    assert full.split(maxsplit=3) == ["good", "full", "1/1", "shapes only: values not checked"]


def test_check_takes_the_device_that_is_there(suites):
    assert run("check", *options(suites), "--device", "auto").exit_code == 0


def test_check_rejects_with_exit_code_1_and_says_why(suites):
    (suites / "mine" / "lazy.py").write_text(GOOD.replace("x * self.weight", "x * 0"))
    (suites / "mine" / "broken.py").write_text("def get_inputs(:\n")
    result = run("check", *options(suites))
    assert result.exit_code == 1
    assert "1 of 3 problems admitted" in result.stdout
    assert "lazy: zeros: output: accepted" in result.stdout
    assert "broken: loads: " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stdout.startswith("suite mine: ")
    assert "┃" not in result.stdout
    assert not result.stderr


@pytest.mark.slow
def test_check_names_the_step_that_takes_long(suites):
    (suites / "mine" / "loop_fwd.py").write_text(GOOD.replace("return x *", "while True: x *"))
    result = run("check", "loop_fwd", *options(suites), "--reference-timeout", "11.5")
    set_reference_limit(DEFAULT_LIMIT_S)
    assert result.stderr.splitlines() == ["checking loop_fwd: forward, 10 s (limit 11.5 s, --reference-timeout)"]


def test_check_json_is_one_record(suites):
    result = run("check", "good", *options(suites), "--json")
    record = json.loads(result.stdout)
    assert record["admitted"] is True
    assert [one["workload"] for one in record["problems"]] == ["small", "full"]
    assert record["problems"][0]["settings"] == {"SMALL": "rows=33", "TAGS": "toy"}
    assert all(check["passed"] and check["evidence"] for check in record["problems"][0]["checks"])


@pytest.mark.parametrize(
    ("line", "limit_s", "message"),
    [
        ("import sys; sys.exit(0)", "60", "module level ends the process, with exit code 0"),
        ("import os; os.execv('/bin/true', ['true'])", "60", "module level ends the process, with exit code 0"),
        ("while True: pass", "0.5", "module level did not end within 0.5 s"),
    ],
)
@pytest.mark.quick(1)
def test_check_reports_a_reference_that_ends_the_process_or_does_not_end(suites, line, limit_s, message):
    (suites / "mine" / "odd.py").write_text(f"{GOOD}\n{line}\n")
    result = run("check", "odd", *options(suites), "--reference-timeout", limit_s)
    set_reference_limit(DEFAULT_LIMIT_S)
    assert result.exit_code == 1
    assert f"odd: problem_error: mine/odd.py: {message}" in join_lines(result.stdout)


@pytest.mark.slow
def test_check_goes_on_after_a_reference_that_ends_the_process(suites):
    (suites / "mine" / "a_bad_one.py").write_text(f"{GOOD}\nimport os; Model.forward = lambda *_: os.abort()\n")
    result = run("check", *options(suites))
    assert result.exit_code == 1
    assert "a_bad_one: problem_error: mine/a_bad_one.py: forward ends the process by SIGABRT" in join_lines(
        result.stdout
    )
    assert "1 of 2 problems admitted" in result.stdout


def test_a_rejected_file_has_the_name_that_an_admitted_one_has(suites):
    (suites / "mine" / "broken.py").write_text("def get_inputs(:\n")
    result = run("check", str(suites / "mine" / "broken.py"), "--json")
    assert [one["problem"] for one in json.loads(result.stdout)["problems"]] == ["broken"]


@pytest.mark.slow
def test_check_refuses_a_full_workload_that_does_not_run(suites):
    (suites / "mine" / "broken.py").write_text(GOOD.replace("x * self", "x.view(33, 40) * self"))
    result = run("check", "broken", *options(suites))
    assert result.exit_code == 1
    said = r"broken: runs: mine/broken\.py, line \d+: forward raised RuntimeError: shape .\[33, 40\]"
    assert re.search(said, join_lines(result.stdout))


def test_check_says_once_that_a_reference_does_not_run(suites):
    (suites / "mine" / "broken.py").write_text(GOOD.replace("x * self", "x.no_such * self"))
    result = run("check", "broken", *options(suites))
    assert result.stdout.count("broken: runs: ") == 1


def test_check_takes_the_path_of_any_reference_file(suites, tmp_path):
    path = tmp_path / "elsewhere.py"
    path.write_text(GOOD.replace('SMALL = {"rows": 33}', ""))
    result = run("check", str(path), *options(suites))
    assert result.exit_code == 0
    assert "full" in result.stdout


def test_an_unknown_problem_suggests_the_nearest(suites):
    result = run("check", "goood", *options(suites))
    assert isinstance(result.exception, UsageError)
    assert "did you mean good?" in str(result.exception)


@pytest.mark.parametrize(("device", "error"), [("tpu", UsageError), ("cuda:x", UsageError), ("cuda:99", UsageError)])
def test_a_device_that_cannot_be_used_is_an_error(suites, device, error):
    assert isinstance(run("check", *options(suites), "--device", device).exception, error)
