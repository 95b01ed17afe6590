"""Machines that lack something: the next weaker isolation is taken and named, and anything missing is a clear error."""

import json
import os
import resource
import shutil
import subprocess

import pytest

from harness.domain import Candidate
from harness.domain.options import TimeLimits
from harness.executors.executor import Origin, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.problems.discovery import read_problem

LONG_S = 5.0
GOOD = """
from torch import nn
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""


NO_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


@pytest.mark.slow
def test_without_namespaces_candidates_are_evaluated_behind_filters_and_the_record_warns(
    tmp_path, tiny_suite, run_harness
):
    before = ["unshare", "--map-root-user", "sh", "-c", NO_NAMESPACES, "sh"]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs user namespaces, to make one in which they are forbidden; they are refused here")
    (tmp_path / "good.py").write_text(GOOD)
    args = ["evaluate", "--candidate", "good.py", "--problem", tiny_suite / "add.py", "--no-time", "--json"]
    finished = run_harness(args, before=before)
    assert finished.returncode == 0, finished.stderr
    record = json.loads(finished.stdout)
    assert record["outcome"] == "correct", record["message"]
    assert "namespaces" not in record["isolation"]
    assert "seccomp, rlimits" in record["isolation"]
    warnings = [finding["message"] for finding in record["findings"] if finding["check"] == "confinement"]
    assert "user namespaces are not allowed here" in warnings[0]


@pytest.mark.slow
def test_on_one_core_everything_works(tmp_path, tiny_suite, run_harness):
    if shutil.which("taskset") is None:
        pytest.skip("needs taskset")
    (tmp_path / "good.py").write_text(GOOD)
    args = ["evaluate", "--candidate", "good.py", "--problem", tiny_suite / "add.py", "--allow-load", "--json"]
    finished = run_harness(args, before=["taskset", "-c", str(min(os.sched_getaffinity(0)))])
    assert finished.returncode == 0, finished.stderr
    record = json.loads(finished.stdout)
    assert record["outcome"] == "correct", record["message"]
    assert record["timing"]["candidate_us"] > 0


def test_failed_shared_memory_allocation_is_a_harness_error_for_one_candidate_only(bench):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert bench.evaluate(GOOD).outcome == "correct"
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, hard))  # a memory file is a file
    try:
        refused = bench.evaluate(GOOD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.outcome == "harness_error"
    assert "shared memory" in refused.message
    assert "unexpected" not in refused.message
    assert bench.evaluate(GOOD).outcome == "correct"


def test_candidate_that_loads_forever_is_a_timeout_that_names_the_limit(bench):
    evaluation = bench.evaluate("import time\ntime.sleep(1e6)\nclass ModelNew:\n    pass\n", load_s=1.0)
    assert evaluation.outcome == "timeout"
    assert "the program was not imported within 1 s" in evaluation.message


HANGS = "from torch.utils import cpp_extension\nwhile True: pass\nclass ModelNew: pass\n"


@pytest.mark.slow
def test_hanging_import_costs_its_time_limit_once(tmp_path, tiny_suite, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # locks of its own: no other command's timing delays a build
    monkeypatch.setattr("tempfile.tempdir", None)
    candidate = Candidate(source=HANGS, language="cpp", rule="file")
    problem = read_problem(tiny_suite / "add.py", "tiny")
    limits = TimeLimits(load_s=LONG_S)
    settings = LocalSettings(cache=tmp_path, limits=limits, fidelity="correctness", attribute_work=False)
    task = make_task(problem, candidate, Origin(run="bench", model="m"), language="cpp")
    with LocalExecutor(settings) as executor:
        first, built_ahead = [future.result() for future in [executor.submit(task) for _ in range(2)]]
    assert (first.outcome, built_ahead.outcome) == ("timeout", "timeout")
    assert first.duration_s >= LONG_S > built_ahead.duration_s
