"""Finding problem files and reading what they say, without running them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain import ProblemError, Tolerance, UsageError
from harness.problems.discovery import find_problem, find_suite, parse_problem, read_problem

PLAIN = '''"""Adds one.

More words.
"""
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

batch_size = 16
height = width = 8

def get_inputs():
    return [torch.rand(batch_size, height, width)]

def get_init_inputs():
    return []
'''


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def test_a_plain_kernelbench_file_is_a_problem_with_a_full_workload_only(tmp_path):
    problem = read_problem(write(tmp_path, "add_one", PLAIN), "mine")
    assert (problem.name, problem.suite, problem.summary) == ("add_one", "mine", "Adds one.")
    assert [workload.name for workload in problem.workloads] == ["full"]
    assert problem.tolerance == Tolerance()
    assert problem.distributions == ("as_given",)


def test_the_literals_of_a_file_become_its_settings(tmp_path):
    text = PLAIN + (
        'SMALL = {"batch_size": 3, "width": 5}\nTAGS = ("toy",)\nTOLERANCE = {"factor": 4.0, "atol": 1e-6}\n'
        'DISTRIBUTIONS = ("as_given", "zeros")\nALLOW_TF32 = True\n'
    )
    problem = read_problem(write(tmp_path, "add_one", text), "mine")
    assert problem.workload("small").overrides == (("batch_size", 3), ("width", 5))
    assert problem.tags == ("toy",)
    assert problem.tolerance == Tolerance(factor=4.0, atol=1e-6)
    assert problem.distributions == ("as_given", "zeros")
    assert problem.allow_tf32 is True


def test_reading_a_file_does_not_run_it(tmp_path):
    text = PLAIN + "raise SystemExit('this file was run')\n"
    assert read_problem(write(tmp_path, "add_one", text), "mine").name == "add_one"


def test_finding_problems_does_not_import_torch():
    code = "import sys, harness.problems.discovery; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_suite_is_sorted_and_leaves_out_private_files(tmp_path):
    for name in ("b_second", "a_first", "_private"):
        write(tmp_path / "mine", name, PLAIN)
    assert [problem.name for problem in find_suite(tmp_path / "mine")] == ["a_first", "b_second"]


def test_a_name_and_a_path_find_the_same_source(tmp_path):
    path = write(tmp_path / "mine", "add_one", PLAIN)
    by_name = find_problem("add_one", tmp_path / "mine")
    assert by_name == find_problem(str(path), tmp_path / "elsewhere")


def test_an_unknown_name_suggests_the_nearest(tmp_path):
    write(tmp_path / "mine", "softmax", PLAIN)
    write(tmp_path / "mine", "matmul", PLAIN)
    with pytest.raises(UsageError, match=r"no problem 'sofmax' in suite 'mine'.*did you mean softmax"):
        find_problem("sofmax", tmp_path / "mine")


def test_a_name_of_another_suite_is_told_with_it(tmp_path):
    write(tmp_path / "mine", "softmax", PLAIN)
    write(tmp_path / "yours", "matmul", PLAIN)
    with pytest.raises(UsageError, match=r"no problem 'matmul' in suite 'mine'; there is yours/matmul$"):
        find_problem("matmul", tmp_path / "mine")


def test_an_unknown_suite_suggests_the_nearest(tmp_path):
    write(tmp_path / "core", "softmax", PLAIN)
    with pytest.raises(UsageError, match=r"no suite 'cor'.*did you mean core"):
        find_suite(tmp_path / "cor")


def test_a_path_without_a_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no reference file at"):
        find_problem(str(tmp_path / "absent.py"), tmp_path)


@pytest.mark.parametrize("name", ["Model", "get_inputs", "get_init_inputs"])
def test_a_file_without_a_required_name_says_which(tmp_path, name):
    path = write(tmp_path, "broken", PLAIN.replace(f"class {name}", "class Other").replace(f"def {name}", "def other"))
    with pytest.raises(ProblemError, match=f"found no {name}"):
        read_problem(path, "mine")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("def broken(:", r"line 20: expected Python"),
        ('SMALL = {"batchsize": 4}', r"SMALL names batchsize.*did you mean batch_size"),
        ('SMALL = {"batch_size": 2 * 2 + int("1")}', r"line 20: SMALL must be a literal.*int\('1'\)"),
        ("SMALL = 4", "SMALL must be a dict"),
        ('SMALL = {"batch_size": None}', r"SMALL\['batch_size'\] must be a number"),
        ('TAGS = "toy"', "TAGS must be a tuple"),
        ('DISTRIBUTIONS = ("gaussian",)', "DISTRIBUTIONS names gaussian; choose among as_given, normal"),
        ('TOLERANCE = {"factor": 0.5}', "TOLERANCE must be.*at least 1"),
        ('TOLERANCE = {"rtol": 1.0}', "an output of zeros would pass with rtol = 1.0"),
        ('TOLERANCE = {"matched": 0}', "matched is a share"),
        ('TOLERANCE = {"fctor": 8.0}', "TOLERANCE must be.*unknown key 'fctor'; did you mean factor?"),
        ("TOLERANCE = {'rtoll': 1}", "TOLERANCE must be.*did you mean rtol. choose among factor, atol, rtol, matched"),
        ("TOLERANCE = 1e-2", "TOLERANCE must be.*expected a dict with factor, atol, rtol, matched, found 0.01"),
        ("TOLERANCE = None", "TOLERANCE must be.*found None"),
        ('TOLERANCE = {"rtol": "1e-2"}', "rtol must be a number, found '1e-2'"),
        ('TOLERANCE = {"factor": None}', "factor must be a number, found None"),
        ("ALLOW_TF32 = 1", "ALLOW_TF32 must be True or False"),
        ("BACKWARDS = True", r"line 20: BACKWARDS is no setting, and nothing reads it\. Did you mean BACKWARD\?"),
        ('TOLERANCES = {"atol": 1e-2}', "Did you mean TOLERANCE?"),
        ("TOLARENCE = dict(atol=1e-2)", "Did you mean TOLERANCE?"),
        ('DISTRIBUTION = ("as_given",)', "Did you mean DISTRIBUTIONS?"),
        ('CASE = [{"name": "given"}]', "Did you mean CASES?"),
        ("ALLOW_TF_32 = True", "Did you mean ALLOW_TF32?"),
        ('SMAL = {"batch_size": 3}', "Did you mean SMALL?"),
        ('small: dict = {"batch_size": 3}', "Did you mean SMALL?"),
        ("Inplace = True", "Did you mean IN_PLACE?"),
        ("SEED_CALLS = True", "Did you mean SEEDED_CALLS?"),
        ("DETERMINISM = True", "Did you mean DETERMINISTIC?"),
        ("DYNAMIC_SHAPE = 1", "Did you mean DYNAMIC_SHAPES?"),
        ("FRESH_OUTPUT = True", "Did you mean FRESH_OUTPUTS?"),
        ("SEEDED = True", "line 20: SEEDED is no setting.*Did you mean SEEDED_CALLS?"),
        ("SEED = 42", "Did you mean SEEDED_CALLS?"),
        ("ATOL = 1e-2", r"Did you mean TOLERANCE = \{\"atol\": ...\}\? Otherwise remove it"),
        ("ATOL, RTOL = 1e-2, 1e-2", "ATOL is no setting"),
        ("RTOL: float = 1e-2", r"Did you mean TOLERANCE = \{\"rtol\""),
        ("FP16_TOL = 1e-2", "Did you mean TOLERANCE?"),
        ("_TOL = base = 1e-2", "Did you mean TOLERANCE?"),
        ("TOLERENCE = 1e-2", "Did you mean TOLERANCE?"),
        ("TOLERANCE_FP16 = {'atol': 1e-2}", "Did you mean TOLERANCE?"),
        ("PRECISION_ = 'bf16'", 'Did you mean CASES, with the key "dtype"?'),
        ("DTYPES = ('bfloat16',)", 'Did you mean CASES, with the key "dtype"?'),
        ("SHAPES = [(4, 8)]", "Did you mean CASES?"),
        ("CASE = {'large': {}}", "Did you mean CASES?"),
        ("TEST_CASES = [(4, 8)]", "Did you mean CASES?"),
        ("TAG = 'conv'", "Did you mean TAGS?"),
        ("TF32 = True", "Did you mean ALLOW_TF32?"),
        ("USE_ALLOW_TF32 = True", "Did you mean ALLOW_TF32?"),
        ("DYNAMIC = True", "Did you mean DYNAMIC_SHAPES?"),
        ("REQUIRES_GRAD = True", "Did you mean BACKWARD?"),
        ("def get_case():\n    return []", "get_case is no setting.*Did you mean get_cases?"),
        ("if height > 4:\n    BACKWARD = True", "line 20: BACKWARD is read without running the file"),
        ("from settings import TOLERANCE", "TOLERANCE is read without running the file"),
        ('TAGS = ("a",)\nTAGS += ("b",)', "line 21: TAGS is read without running the file"),
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error_that_names_it(tmp_path, line, message):
    path = write(tmp_path, "broken", PLAIN + line + "\n")
    with pytest.raises(ProblemError, match=message) as caught:
        read_problem(path, "mine")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "lines",
    [
        "BATCH_SIZE, N, M, K = 4, 8, 16, 32",
        "IN_PLANES = 64\nTAPS = 5\nSTAGES = 3\nRANGE = 10\nTRAIN_STEPS = 4\nSCALES = (1, 2)",
        'CASE = {"a": 1}\nvalues = list(CASE)',
        "ATOL, SEED, PRECISION = 1e-2, 1, 'high'\nuses = (ATOL, SEED, PRECISION)",
        'TOL = 1e-2\nuses = globals()["TOL"]',
        "EPS = 1e-5\nOUT_FEATURES = 4\nNUM_WEIGHTS = 3\nBLOCK_SIZES = (1, 2)\nIN = 4\nTRIALS = 3\natol = 1e-3",
        "training = True\nuses = training",
        'if __name__ == "__main__":\n    CASES = [get_inputs()]',
    ],
)
def test_constants_of_the_file_are_its_own(tmp_path, lines):
    assert read_problem(write(tmp_path, "own", f"{PLAIN}{lines}\n"), "mine").tags == ()


def test_a_file_that_is_not_text_is_a_problem_error(tmp_path):
    path = tmp_path / "binary.py"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProblemError, match="save it as UTF-8"):
        read_problem(path, "mine")


def test_files_may_begin_with_a_byte_order_mark(tmp_path):
    path = write(tmp_path, "add_one", f"\ufeff{PLAIN}")
    (tmp_path / "suite.toml").write_text("\ufeffrequires_kernel = true\n")
    problem = read_problem(path, "mine")
    assert (problem.source, problem.requires_kernel) == (PLAIN, True)
    assert parse_problem(f"\ufeff{PLAIN}", path, "mine").source == PLAIN
