import json
import sqlite3
from contextlib import closing
from xml.etree import ElementTree

import pytest

from harness.cli.doctor import print_checks
from harness.cli.main import run_command
from harness.doctor.machine import MachinePart
from harness.domain import Candidate, Correctness, Evaluation, Outcome, Subject, Trial
from harness.hardware.host import cpu_name
from harness.problems.discovery import read_problem
from harness.store.results import ResultStore
from harness.store.serialization import compress_text

HEAD = "import torch\nfrom torch import nn\n"
RIGHT = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
WRONG = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a - b\n"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys, build_cache):
    """Runs one command line in this process, in the test's folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # read again from TMPDIR: devices are locked there
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(build_cache))

    def run(*args):
        code = run_command([str(arg) for arg in args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def store_past(tmp_path, tiny_suite):
    """Stores that a program once ended with an outcome."""

    def store(source, outcome):
        problem = read_problem(tiny_suite / "add.py", "tiny")
        candidate = Candidate(source=source, language="cpp", rule="last_block")
        subject = Subject(
            run="past", sample=0, turn=0, model="model-a", prompt="plain", suite="tiny", problem="add",
            problem_digest=problem.digest, candidate_digest=candidate.digest, language="cpp", device="cpu",
            workload="full", baseline="eager",
        )  # fmt: skip
        passed = outcome is Outcome.CORRECT
        correctness = Correctness(trials=(Trial(distribution="as_given", passed=passed),), weights="none")
        with ResultStore.open(tmp_path / "results") as results:
            environment = (("cpu", cpu_name()),)
            past = Evaluation(subject=subject, outcome=outcome, correctness=correctness, environment=environment)
            results.record(past, source)

    return store


def test_an_edited_source_in_the_results_is_not_evaluated(command, tiny_suite, store_past, tmp_path):
    store_past(RIGHT, Outcome.CORRECT)
    with closing(sqlite3.connect(tmp_path / "results" / "harness.db")) as database, database:
        database.execute("UPDATE candidates SET source = ?", (compress_text(WRONG),))
    code, stdout, _ = command("regress", "--problems-dir", tiny_suite.parent, "--no-extraction", "--json", "-")
    assert code == 4
    (change,) = json.loads(stdout)["changes"]
    assert change["kind"] == "not_comparable"
    assert "was edited" in json.dumps(change)


def test_with_nothing_stored_nothing_is_comparable(command):
    code, stdout, _ = command("regress")
    assert code == 4
    assert "evaluate a run first" in stdout


@pytest.mark.slow
def test_a_candidate_that_got_worse_ends_with_1_and_is_named_everywhere(command, store_past, tiny_suite, tmp_path):
    store_past(WRONG, Outcome.CORRECT)
    junit, comment = tmp_path / "out" / "junit.xml", tmp_path / "comment.md"
    code, stdout, _ = command(
        "regress", "--problems-dir", tiny_suite.parent, "--json", "-", "--junit", junit, "--markdown", comment
    )
    record = json.loads(stdout)
    (change,) = record["changes"]
    assert code == record["exit_code"] == 1
    assert (change["kind"], change["before"], change["after"]) == ("broken", "correct", "wrong_value")
    assert (change["candidate"], change["stored"], change["evaluations"]) == ("past/add/0", 1, 2)
    assert ElementTree.parse(junit).find(".//failure").get("message") == "broken: correct -> wrong_value"
    assert "**broken**" in comment.read_text()


@pytest.mark.slow
def test_unchanged_failures_exit_with_0_and_keep_the_baseline_run(command, store_past, tiny_suite, tmp_path):
    store_past(WRONG, Outcome.WRONG_VALUE)
    arguments = ("regress", "past", "--problems-dir", tiny_suite.parent, "--no-time")
    code, stdout, _ = command(*arguments)
    assert code == 0
    assert "past/add/0" in stdout
    with ResultStore.open(tmp_path / "results", read_only=True) as results:
        assert results.count() == 1
    with ResultStore.open(tmp_path / "results" / "regress", read_only=True) as results:
        assert results.count() == 1
    assert command(*arguments, "--update")[0] == 0
    with ResultStore.open(tmp_path / "results", read_only=True) as results:
        assert results.count() == 2


def test_a_problem_that_is_gone_is_not_comparable_and_says_so(command, store_past, tiny_suite):
    store_past(RIGHT, Outcome.CORRECT)
    (tiny_suite / "add.py").rename(tiny_suite / "sum.py")
    code, stdout, _ = command("regress", "--problems-dir", tiny_suite.parent, "--json", "-")
    (change,) = json.loads(stdout)["changes"]
    assert code == 4
    assert change["kind"] == "not_comparable"
    assert "no problem 'add'" in change["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--since", "yesterday"), "--since expects a day"),
        (("--pins", "absent.txt"), "cannot read the pins"),
        (("nothing-*",), "no run 'nothing-*' in "),
        (("--json", "-", "--markdown", "-"), "only one of"),
        (("--factor", "0.5"), "factor"),
    ],
)
def test_wrong_usage_ends_with_2(command, store_past, arguments, message):
    store_past(RIGHT, Outcome.CORRECT)
    code, _, stderr = command("regress", *arguments)
    assert code == 2
    assert message in stderr


@pytest.fixture
def doctor(command, once, tmp_path, monkeypatch):
    """The exit code, the record and the standard error of `harness doctor --json`. Its trial imports of compilers find
    empty modules: together the real ones take half a minute of CPU time."""
    for name in ("helion", "tilelang", "cutlass"):
        (tmp_path / f"{name}.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def examine():
        code, stdout, stderr = command("doctor", "--no-builds", "--json")
        return code, json.loads(stdout), stderr

    return once("doctor", examine)


@pytest.mark.slow
def test_doctor_names_each_part_as_found_or_its_benefit(doctor):
    code, parts, _ = doctor
    assert code == 0
    assert {"torch", "C++ compiler", "ninja", "nvcc", "worker sandbox"} <= set(parts)
    assert all(part["found"] if part["present"] else part["without_it"] for part in parts.values())


@pytest.mark.slow
def test_doctor_names_slow_steps_on_standard_error(doctor):
    assert "starting a sandboxed worker ..." in doctor[2].splitlines()


def test_doctor_prints_each_check_before_the_next_is_made(capsys):
    def check(part):
        return MachinePart(part=part, present=True, found="yes", without_it="")

    def examine():
        yield check("first")
        assert "first" in capsys.readouterr().out
        yield check("second")

    print_checks(examine())
    assert "second" in capsys.readouterr().out


def assert_fits_on_80_columns(parts, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    print_checks(parts)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > len(parts)
    assert max(map(len, lines)) <= 80


def test_long_texts_of_doctor_fit_on_80_columns(monkeypatch, capsys):
    found = MachinePart(part="worker sandbox", present=True, found="a layer, " * 30, without_it="")
    missing = MachinePart(part="C++ compiler", present=False, found="", without_it="not built, " * 30)
    assert_fits_on_80_columns([found, missing], monkeypatch, capsys)


@pytest.mark.slow
def test_doctor_fits_on_80_columns(doctor, monkeypatch, capsys):
    assert_fits_on_80_columns([MachinePart(**part) for part in doctor[1].values()], monkeypatch, capsys)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_doctor_says_of_each_strategy_whether_it_works_here(command, monkeypatch, needs_compiler):
    monkeypatch.setenv("CUDA_HOME", "none")  # `test_fast_strategy.py` builds CUDA by nvcc in both strategies
    code, stdout, _ = command("doctor", "--json")
    parts = {name: part for name, part in json.loads(stdout).items() if name.startswith("build ")}
    assert code == 0
    assert {"build cpp fast", "build cpp plain", "build cuda emulated"} == set(parts)
    assert [part for part in parts.values() if not part["present"]] == []
