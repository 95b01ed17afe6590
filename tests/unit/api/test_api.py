import subprocess
import sys

import pytest

import harness
from harness.domain import UsageError
from harness.formats.kernelbench.format import StoredClaims, write_claims
from harness.store.results import ResultStore


def test_results_are_a_frame_with_the_latest_of_each_candidate(tmp_path, evaluation_of):
    with ResultStore.open(tmp_path) as store:
        store.record_all((evaluation_of("correct", speedup), None) for speedup in (2.0, 3.0))
    frame = harness.load_results(tmp_path)
    assert frame.speedup.tolist() == [3.0]
    assert harness.load_results(tmp_path, history=True).id.tolist() == [1, 2]


def test_a_folder_without_results_gives_an_empty_frame_and_creates_nothing(tmp_path):
    frame = harness.load_results(tmp_path / "absent")
    assert frame.empty
    assert "speedup" in frame.columns
    assert not (tmp_path / "absent").exists()


def test_claims_are_named_as_such_and_are_no_results(tmp_path, write_run):
    run_dir = write_run("past", ["pass"])
    assert harness.load_claims("past", tmp_path / "generated").empty
    entry = {"sample_id": 3, "compiled": True, "correctness": True, "runtime": 2.0}
    baseline = {"level1": {"5_X.py": {"mean": 3.0}}}
    write_claims(run_dir, StoredClaims(format="kernelbench", level=1, results={"5": entry}, baseline=baseline))
    (row,) = harness.load_claims("past", tmp_path / "generated").to_dict("records")
    assert (row["number"], row["sample"], row["claimed_speedup"]) == (5, 3, 1.5)
    assert "speedup" not in row


@pytest.mark.parametrize("candidate", ["absent.py", "\0", "x=1", "", " \n", "x" * 5000, None, 5, b"x"])
@pytest.mark.quick(4)
def test_a_candidate_that_cannot_be_read_is_wrong_usage(candidate):
    with pytest.raises(UsageError, match=r"cannot read .*: give the path of a file, or source of several"):
        harness.evaluate(candidate, "softmax")


def test_an_unknown_problem_is_wrong_usage(tiny_suite):
    with pytest.raises(UsageError, match="no problem 'sub'"):
        harness.evaluate("class ModelNew:\n    pass\n", "sub", suite="tiny", problems_dir=tiny_suite.parent)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "tiny"}, "unknown workload 'tiny'; choose among full, small"),
        ({"language": "pytorch"}, r"unknown language 'pytorch'; did you mean torch\? choose among cute, tilelang"),
        ({"language": ""}, "unknown language ''; choose among cute"),
        ({"baseline": "eagre"}, r"unknown baseline 'eagre'; did you mean eager\?"),
        ({"dtype": "bf61"}, r"unknown dtype 'bf61'; did you mean bf16\? choose among fp32"),
        ({"fidelity": "fast"}, "unknown fidelity 'fast'; choose among correctness, quick, full"),
        ({"problem": None}, "no problem None: give its name"),
    ],
)
def test_an_unknown_option_is_wrong_usage(tiny_suite, options, message):
    given = {"problem": "sum", "suite": tiny_suite.name} | options
    with pytest.raises(UsageError, match=message):
        harness.evaluate("class ModelNew:\n    pass\n", **given)


def test_a_search_in_an_unknown_language_is_wrong_usage():
    with pytest.raises(UsageError, match=r"unknown language 'tritn'; did you mean triton\?"):
        harness.improve("softmax", model="m", language="tritn")


def test_the_report_of_a_folder_is_one_file(tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0))
    path = harness.render_report(tmp_path / "out" / "r.html", results_dir=tmp_path / "results", generated_dir=tmp_path)
    assert path.read_text().lower().startswith("<!doctype html>")


USE = """
import harness, os, sys, threading
assert "torch" not in sys.modules
BEFORE
good = "import torch\\nclass ModelNew(torch.nn.Module):\\n    def forward(self, a, b):\\n        return a + b\\n"
with harness.Evaluator(device="cpu", time=False, suite=SUITE, problems_dir=FOLDER) as evaluator:
    found = []
    thread = threading.Thread(target=lambda: found.append(evaluator.evaluate("x = 1\\n", "add")))
    thread.start()
    futures = [evaluator.submit(source, "add") for source in (good, good.replace("+", "-"))]
    thread.join()
    print(*(one.outcome for one in (*found, *(future.result() for future in futures))))
print(os.environ.get("OMP_WAIT_POLICY"), "torch" in sys.modules)
"""


@pytest.mark.parametrize("before", ["", pytest.param("import torch", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_evaluator_is_thread_safe_and_leaves_its_process_unchanged(tiny_suite, clean_environment_for, before):
    code = USE.replace("BEFORE", before).replace("SUITE", repr(tiny_suite.name))
    finished = subprocess.run(
        [sys.executable, "-c", code.replace("FOLDER", repr(str(tiny_suite.parent)))],
        env=clean_environment_for(), capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert finished.stdout.split() == ["load_error", "correct", "wrong_value", "None", str(bool(before))]
    assert finished.stderr == ""
