"""Import from other formats, evaluation of right and wrong programs, and export of the verdicts."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "formats"))
from folders import HELPER, RIGHT, WRONG, solution_of, workload_of, write_sol_problem, write_task, write_trace_set

SOLUTIONS = (
    solution_of("right", {"main.py": RIGHT, "helper.py": HELPER}),
    solution_of("wrong", {"main.py": WRONG}, destination_passing_style=False),
    solution_of("tile", {"main.py": WRONG}, language="cutile"),
)
SUBMISSIONS = {"submission": "correct", "solutions/wrong/half": "wrong_value"}
VERDICTS = {"right": "correct", "wrong": "wrong_value", "tile": "not_run"}


@pytest.fixture
def verdicts(run_harness, tmp_path):
    """Imports a folder, checks its problems and evaluates its solutions: outcomes by the name of the solution."""

    def find(folder, suite, run):
        for arguments in (["import", folder], ["problems", "check", "--suite", suite, "--device", "cpu"]):
            done = run_harness(arguments)
            assert done.returncode == 0, done.stdout + done.stderr
        done = run_harness(["evaluate", run, "--device", "cpu", "--no-time", "--json"])
        records = [json.loads(line) for line in done.stdout.splitlines()]
        names = tmp_path / "generated" / run
        return {
            json.loads((names / one["problem"] / str(one["sample"]) / "provenance.json").read_text())["solution"]: one
            for one in records
        }

    return find


@pytest.mark.slow
@pytest.mark.parametrize(("write", "suite"), [(write_trace_set, "flashinfer"), (write_sol_problem, "sol_execbench")])
def test_solutions_get_verdicts_that_are_exported_as_traces(write, suite, verdicts, run_harness, tmp_path):
    workloads = [workload_of(), workload_of("w2", 6, tolerance={"max_atol": 1e-5, "max_rtol": 1e-5})]
    found = verdicts(write(tmp_path / "given", workloads=workloads, solutions=SOLUTIONS), suite, f"{suite}-someone")
    assert {name: one["outcome"] for name, one in found.items()} == VERDICTS
    assert found["tile"]["message"].endswith("language cutile is not supported")
    run_harness(["export", "--format", "flashinfer-bench", "--run", f"{suite}-someone", "out"])
    lines = (tmp_path / "out" / "traces" / "scale_rows_k8.jsonl").read_text().splitlines()
    statuses = [(one["solution"], one["evaluation"]["status"]) for one in map(json.loads, lines)]
    assert statuses == [("right", "PASSED"), ("right", "PASSED"), ("wrong", "INCORRECT_NUMERICAL")]


@pytest.mark.slow
def test_workload_that_does_not_fit_is_not_run(verdicts, tmp_path):
    workloads = [workload_of(), workload_of("huge", 1 << 42)]
    write_trace_set(tmp_path / "given", workloads=workloads, solutions=SOLUTIONS[:1])
    [one] = verdicts(tmp_path / "given", "flashinfer", "flashinfer-someone").values()
    assert (one["outcome"], "huge" in one["message"]) == ("not_run", True)


@pytest.mark.slow
def test_submissions_of_a_task_get_verdicts(verdicts, tmp_path):
    write_task(tmp_path / "pmpp" / "add")
    found = verdicts(tmp_path / "pmpp", "gpu_mode_pmpp", "gpu_mode_pmpp-submissions")
    assert {name: one["outcome"] for name, one in found.items()} == SUBMISSIONS
