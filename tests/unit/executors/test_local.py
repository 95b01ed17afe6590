import multiprocessing
import time

import pytest

from harness.domain import Candidate, DeviceError, Problem, Subject
from harness.executors.local import LocalExecutor, LocalSettings, Task, hold_device
from harness.judge.evaluate import JudgeSettings

HEAD = "import torch\nfrom torch import nn\n"
GOOD = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
PROBLEM = f"""{HEAD}
class Model(nn.Module):
    def forward(self, a, b):
        return a + b
def get_inputs():
    return [torch.randn(8, 9), torch.randn(8, 9)]
def get_init_inputs():
    return []
"""
# Plain CUDA without a torch header: seconds instead of minutes.
CUDA = f"""{HEAD}from torch.utils.cpp_extension import load_inline
load_inline("plain", cpp_sources="", cuda_sources='extern "C" __global__ void k(float* x) {{{{ x[0] = 1; }}}}',
            no_implicit_headers=True, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""


def make_task(source, *, language="cpp", sample=0, problem_source=PROBLEM):
    problem = Problem(name="add", suite="tiny", source=problem_source)
    candidate = None if source is None else Candidate(source=source, language=language, rule="file")
    subject = Subject(
        run="r", sample=sample, turn=0, model="m", prompt="-", suite="tiny", problem="add",
        problem_digest=problem.digest, candidate_digest="" if candidate is None else candidate.digest,
        language=language, device="none", workload="full", baseline="eager",
    )  # fmt: skip
    return Task(subject=subject, problem=problem, candidate=candidate)


@pytest.fixture
def run_tasks(build_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def run(tasks, **changes):
        settings = LocalSettings(cache=build_cache, judge=JudgeSettings(measure_time=False), **changes)
        reported = []
        with LocalExecutor(settings) as executor:
            executor.run(tasks, lambda stage, task, evaluation: reported.append((stage, task, evaluation)))
        return reported

    return run


def test_every_task_is_reported_once_with_its_verdict_and_its_device(run_tasks):
    sources = [GOOD, GOOD.replace("+ b", "- b"), None, "not python ("]
    reported = run_tasks([make_task(source, sample=number) for number, source in enumerate(sources)])
    judged = {task.subject.sample: evaluation for stage, task, evaluation in reported if stage == "judge"}
    outcomes = [judged[number].outcome for number in range(4)]
    assert outcomes == ["correct", "wrong_value", "no_code", "load_error"]
    assert {evaluation.subject.device for evaluation in judged.values()} == {"cpu"}
    assert len([stage for stage, *_ in reported if stage == "judge"]) == 4


def test_a_broken_reference_is_the_harness_failing_and_not_the_candidate(run_tasks):
    broken = PROBLEM.replace("return a + b", "raise RuntimeError('reference')")
    reported = run_tasks([make_task(GOOD, problem_source=broken), make_task(GOOD, sample=1)])
    judged = {task.subject.sample: evaluation for stage, task, evaluation in reported if stage == "judge"}
    assert judged[0].outcome == "harness_error"
    assert "reference" in judged[0].message
    assert judged[1].outcome == "correct"


@pytest.mark.nvcc
def test_a_cuda_candidate_for_the_cpu_is_built_linked_and_loaded_but_not_run(run_tasks):
    tasks = [make_task(CUDA, language="cuda")]
    (only,) = [entry for entry in run_tasks(tasks, device="cpu") if entry[0] == "judge"]
    evaluation = only[2]
    assert evaluation.outcome == "not_run", evaluation.message
    assert evaluation.message.startswith("built, linked and loaded 1 extension, but this machine has no device")
    assert evaluation.subject.device == "none"
    assert len(evaluation.build.keys) == 1


def test_a_device_that_is_not_here_is_an_error(run_tasks):
    with pytest.raises(DeviceError, match="cuda:99 was asked for"):
        run_tasks([make_task(GOOD, language="cuda")], device="cuda:99")


def hold_for_a_while(name, entered, seconds):
    with hold_device(name):
        entered.set()
        time.sleep(seconds)


def test_two_processes_do_not_hold_one_device_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    context = multiprocessing.get_context("spawn")
    entered = context.Event()
    other = context.Process(target=hold_for_a_while, args=("cpu", entered, 1.0))
    other.start()
    assert entered.wait(60)
    began_s = time.monotonic()
    with hold_device("cuda:0"):
        assert time.monotonic() - began_s < 0.5
    with hold_device("cpu"):
        assert time.monotonic() - began_s > 0.5
    other.join()
