import subprocess
import sys

import pytest

import harness
from harness.domain import UsageError
from harness.kernelbench.claims import StoredClaims, write_claims
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


@pytest.mark.parametrize("candidate", ["absent.py", "\0"])
def test_a_candidate_that_cannot_be_read_is_wrong_usage(candidate):
    with pytest.raises((UsageError, ValueError), match=r"cannot read|null"):
        harness.evaluate(candidate, "softmax")


def test_an_unknown_problem_is_wrong_usage(tiny_suite):
    with pytest.raises(UsageError, match="no problem 'sub'"):
        harness.evaluate("class ModelNew:\n    pass\n", "sub", suite="tiny", problems_dir=tiny_suite.parent)


def test_the_report_of_a_folder_is_one_file(tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0))
    path = harness.render_report(tmp_path / "out" / "r.html", results_dir=tmp_path / "results", generated_dir=tmp_path)
    assert path.read_text().lower().startswith("<!doctype html>")


def _evaluate_after(*imports, tiny_suite, env):
    """Evaluates a candidate without code in a new process that imports these modules first."""
    lines = [f"import {name}" for name in (*imports, "os", "harness")]
    call = f"harness.evaluate('x = 1\\n', 'add', suite={tiny_suite.name!r}, problems_dir={str(tiny_suite.parent)!r})"
    code = "\n".join([*lines, f"print({call}.outcome)", "print(os.environ.get('OMP_WAIT_POLICY'))"])
    return subprocess.run(
        [sys.executable, "-W", "always::UserWarning", "-c", code],
        env=env, capture_output=True, text=True, timeout=200, check=True,
    )  # fmt: skip


def test_a_process_that_imported_torch_first_is_warned_that_its_threads_spin(tiny_suite, clean_environment_for):
    late = _evaluate_after("torch", tiny_suite=tiny_suite, env=clean_environment_for())
    assert "torch was imported before harness.evaluate and OMP_WAIT_POLICY is not set" in late.stderr
    assert late.stdout.split()[-1] == "None"


@pytest.mark.parametrize(("imports", "policy"), [((), None), (("torch",), "ACTIVE")])
def test_threads_wait_asleep_unless_the_user_says_otherwise(tiny_suite, clean_environment_for, imports, policy):
    finished = _evaluate_after(*imports, tiny_suite=tiny_suite, env=clean_environment_for(OMP_WAIT_POLICY=policy))
    assert "OMP_WAIT_POLICY" not in finished.stderr
    assert finished.stdout.split()[-1] == (policy or "PASSIVE")
