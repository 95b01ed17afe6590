"""`harness evaluate` on a machine or with arguments that lack something: the message, the exit code, and that what was
there before is still there."""

import json
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from harness.cli.main import run_command
from harness.store.results import ResultStore

HEAD = "import torch\nfrom torch import nn\n"
GOOD = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
CUDA = f"""{HEAD}from torch.utils.cpp_extension import load_inline
ext = load_inline("kernel", cpp_sources="int f();", cuda_sources="__global__ void k() {{}}", functions=["f"])
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""
CPP = f"""{HEAD}from torch.utils.cpp_extension import load_inline
ext = load_inline("host", cpp_sources='extern "C" int seven() {{ return 7; }}', is_python_module=False,
                  no_implicit_headers=True)
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""


@pytest.fixture
def evaluate_file(tmp_path, tiny_suite, run_harness):
    """Evaluates one program against the tiny problem, given by path; the one record that --json prints."""

    def evaluate(source, *args, run=run_harness, **options):
        (tmp_path / "candidate.py").write_text(source)
        base = ["evaluate", "--candidate", "candidate.py", "--problem", tiny_suite / "add.py", "--no-time", "--json"]
        finished = run([*base, *args], **options)
        return finished, json.loads(finished.stdout) if finished.stdout else None

    return evaluate


@pytest.mark.slow
def test_cuda_candidate_without_nvcc_is_not_run_and_the_message_names_nvcc(evaluate_file, tmp_path):
    tools = bare_path(tmp_path, ["c++", "g++", "cc", "gcc", "ld", "as", "sh"])
    environment = {"PATH": tools, "CUDA_HOME": str(tmp_path / "no-cuda"), "CUDA_VISIBLE_DEVICES": ""}
    finished, record = evaluate_file(CUDA, "--device", "cpu", env=environment)
    assert finished.returncode == 3, finished.stderr
    assert record["outcome"] == "not_run"
    assert "needs nvcc" in record["message"]
    assert "lacks nvcc" in record["message"]
    assert record["speedup"] is None


WITHOUT_TORCH = """import sys
from harness.cli.main import run_command
code = run_command(sys.argv[1:])
print("torch" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
def test_missing_compiler_is_not_run_and_the_command_imports_no_torch(evaluate_file, tmp_path):
    environment = {"PATH": bare_path(tmp_path, ["sh"]), "CXX": None, "CC": None}
    finished, record = evaluate_file(CPP, env=environment, program=("-c", WITHOUT_TORCH))
    assert finished.returncode == 3, finished.stderr
    assert finished.stderr.splitlines()[-1] == "False"
    assert record["outcome"] == "not_run"
    assert "no C++ compiler was found; install one" in record["message"]


def bare_path(tmp_path, names):
    """A PATH with these programs only."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(Path(found).resolve())
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "outcome", "code"),
    [(GOOD, "correct", 0), (GOOD.replace("a + b", "a - b"), "wrong_value", 1), ("x = 1\n", "load_error", 1)],
)
def test_the_exit_code_of_a_single_candidate_tells_its_verdict(evaluate_file, call_harness, source, outcome, code):
    finished, record = evaluate_file(source, run=call_harness)
    assert (record["outcome"], finished.returncode) == (outcome, code)
    again, _ = evaluate_file(source, run=call_harness)  # evaluated before
    assert again.returncode == code
    lenient, _ = evaluate_file(source, "--exit-zero", run=call_harness)
    assert lenient.returncode == 0


@pytest.mark.slow
def test_candidate_that_loads_forever_is_a_timeout_that_names_the_limit(evaluate_file, call_harness):
    endless = "while True:\n    pass\nclass ModelNew: pass\n"
    finished, record = evaluate_file(endless, "--load-timeout", "2", run=call_harness)
    assert (record["outcome"], finished.returncode) == ("timeout", 1)
    assert "the program was not imported within" in record["message"]


@pytest.mark.slow
@pytest.mark.parametrize(("device", "language"), [("cpu", "cpp"), ("emulated", "cuda")])
def test_endless_reference_is_an_error_with_its_name_and_limit(evaluate_file, tiny_suite, device, language):
    problem = tiny_suite / "add.py"
    problem.write_text(problem.read_text().replace("def get_inputs():\n", "def get_inputs():\n    while True: pass\n"))
    finished, record = evaluate_file(GOOD, "--device", device, "--language", language, "--reference-timeout", "1")
    assert (finished.returncode, record["outcome"]) == (2, "problem_error")
    assert "tiny/add.py: get_inputs() did not end within 1 s" in record["message"]


SMALL_DISK = 'mkdir -p "$0" && mount -t tmpfs -o size=$1 small "$0" && shift && exec "$@"'


def on_a_small_disk(folder, size):
    """A command prefix that puts a small file system over a folder, seen by that command alone."""
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("needs user namespaces to mount a small disk; they are refused here")
    return ["unshare", "-rm", "sh", "-c", SMALL_DISK, folder, size]


@pytest.mark.slow
def test_full_disk_of_the_cache_is_a_harness_error_with_a_remedy(evaluate_file, tmp_path, needs_compiler):
    prefix = on_a_small_disk(tmp_path / "cache", "16k")
    finished, record = evaluate_file(CPP, "--cache-dir", tmp_path / "cache", before=prefix)
    assert finished.returncode == 3, finished.stderr
    assert record["outcome"] == "harness_error"
    assert "No space left" in record["message"]
    assert "--cache-dir" in record["message"]


@pytest.mark.slow
def test_full_disk_of_results_is_an_error_and_keeps_stored_rows(tmp_path, tiny_suite, write_run, start_harness):
    write_run("many", [f"# {number}\n# {os.urandom(50000).hex()}\n{GOOD}" for number in range(6)])
    prefix = on_a_small_disk(tmp_path / "results", "220k")
    copy = f'"$@"; code=$?; cp -r "{tmp_path}/results" "{tmp_path}/kept"; exit $code'
    args = ["evaluate", "many", "--problems-dir", tiny_suite.parent, "--no-time"]
    process = start_harness(args, before=[*prefix, "sh", "-c", copy, "sh"])
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    assert "full" in stderr or "No space left" in stderr
    kept = sqlite3.connect(tmp_path / "kept" / "harness.db")
    outcomes = [row[0] for row in kept.execute("SELECT outcome FROM evaluations")]
    kept.close()
    assert 0 < len(outcomes) < 6
    assert set(outcomes) == {"correct"}


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs one command line in this process, in the test's folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # read again from TMPDIR: devices are locked there

    def run(*args):
        code = run_command([str(arg) for arg in args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_an_unknown_problem_suggests_the_nearest(command, tiny_suite, tmp_path):
    (tmp_path / "c.py").write_text(GOOD)
    args = ["--problems-dir", tiny_suite.parent, "--suite", "tiny"]
    code, _, stderr = command("evaluate", "--candidate", "c.py", "--problem", "ad", *args)
    assert code == 2
    assert "no problem 'ad'" in stderr
    assert "did you mean add?" in stderr


def test_an_unknown_run_suggests_the_nearest(command, tiny_suite, write_run):
    write_run("first-run", [GOOD])
    code, _, stderr = command("evaluate", "frist-run", "--problems-dir", tiny_suite.parent)
    assert code == 2
    assert "did you mean first-run?" in stderr


def test_an_edited_program_of_a_run_is_not_taken_for_the_models(command, tiny_suite, write_run, tmp_path):
    write_run("r", [GOOD])
    program = tmp_path / "generated" / "r" / "add" / "0" / "candidate.py"
    program.write_text(GOOD.replace("a + b", "b + a"))
    args = ("evaluate", "r", "--problems-dir", tiny_suite.parent, "--workload", "small")  # which is not there
    code, _, stderr = command(*args)
    assert code == 2
    assert "add/0/candidate.py was edited after extraction" in stderr
    program.write_text(GOOD)
    assert command(*args)[0] == 0


def test_without_any_run_it_says_how_to_make_one(command):
    code, _, stderr = command("evaluate")
    assert code == 2
    assert "make one with harness generate" in stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--candidate", "missing.py", "--problem", "add"], "cannot read the candidate missing.py"),
        (["--candidate", "c.py"], "needs --problem"),
        (["--problem", "add"], "--problem needs files, --candidate or runs"),
        (["--candidate", "c.py", "--problem", "no/such/file.py"], "no reference file at no/such/file.py"),
        (["--candidate", "c.py", "--problem", "bad.py"], "get_init_inputs"),
        (["--candidate", "c.py", "--problem", "broken.py"], "broken.py, line 1: expected Python"),
        (["--candidate", "c.py", "--problem", "add", "--device", "gpu0"], "expected auto, cpu, emulated, cuda"),
    ],
)
def test_arguments_that_do_not_fit_get_a_sentence_and_no_traceback(args, words, command, tiny_suite, tmp_path):
    (tmp_path / "c.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text("class Model: pass\ndef get_inputs(): return []\n")
    (tmp_path / "broken.py").write_text("class Model(:\n")
    code, stdout, stderr = command("evaluate", *args, "--problems-dir", tiny_suite.parent, "--suite", "tiny")
    assert code in (2, 3)
    assert words in stderr
    assert stdout == ""


def test_a_database_of_a_newer_version_is_left_as_it_is(command, tiny_suite, write_run, tmp_path):
    write_run("r", [GOOD])
    ResultStore.open(tmp_path / "results").close()
    connection = sqlite3.connect(tmp_path / "results" / "harness.db")
    connection.execute("PRAGMA user_version = 9999")
    connection.commit()
    connection.close()
    before = (tmp_path / "results" / "harness.db").read_bytes()
    code, _, stderr = command("evaluate", "r", "--problems-dir", tiny_suite.parent)
    assert code == 3
    assert "in schema 9999" in stderr
    assert "upgrade harness" in stderr
    assert (tmp_path / "results" / "harness.db").read_bytes() == before


@pytest.mark.slow
def test_finished_candidate_is_evaluated_anew_only_with_again(command, tiny_suite, write_run, tmp_path, build_cache):
    write_run("r", [GOOD, None])
    args = ["evaluate", "r", "--problems-dir", tiny_suite.parent, "--no-time", "--cache-dir", build_cache]
    assert command(*args)[0] == 0
    code, stdout, _ = command(*args)
    assert code == 0
    assert "2 already evaluated: 1 correct, 1 no_code (--again re-evaluates them)" in stdout
    assert all(f" {outcome} " in stdout for outcome in ("correct", "no_code")), "the table has what was stored before"
    assert command(*args, "--again")[0] == 0
    connection = sqlite3.connect(tmp_path / "results" / "harness.db")
    assert connection.execute("SELECT count(*) FROM evaluations").fetchone() == (4,)
    connection.close()
    csv = (tmp_path / "results" / "evaluations.csv").read_text()
    assert csv.count("no_code") == 1


def test_a_workload_that_the_problem_lacks_is_said_and_not_evaluated(command, tiny_suite, write_run):
    write_run("r", [GOOD])
    code, stdout, _ = command("evaluate", "r", "--problems-dir", tiny_suite.parent, "--workload", "small")
    assert code == 0
    assert "no small workload: add" in stdout


def test_candidate_without_the_requested_workload_is_an_error(command, tiny_suite, tmp_path):
    (tmp_path / "kernel.py").write_text(GOOD)
    args = ("--candidate", tmp_path / "kernel.py", "--problem", tiny_suite / "add.py", "--language", "cpp")
    code, stdout, stderr = command("evaluate", *args, "--workload", "small", "--json")
    assert (code, stdout) == (2, "")
    assert "add.py has no small workload: write SMALL = {...} into its file" in stderr.replace("\n", " ")


@pytest.mark.slow
def test_one_program_is_explained_also_if_it_was_evaluated_before(command, tiny_suite, tmp_path):
    (tmp_path / "kernel.py").write_text("import triton\n@triton.jit\ndef f(x):\n    pass\nnot python (\n")
    args = ["evaluate", "--candidate", tmp_path / "kernel.py", "--problem", tiny_suite / "add.py", "--gpu", "H100"]
    for time in range(2):
        code, stdout, stderr = command(*args, "--language", "cpp", "--no-time")
        assert code == 1
        assert "load_error: " in stdout
        assert "note: the program is evaluated as cpp, and looks like triton: --language triton" in stdout
        assert "Details: harness show 1, harness explain load_error" in stdout
        assert ("1 already evaluated (--again" in stdout) == (time == 1)
        assert ("nothing was emulated here" in stderr) == (time == 0)
