import multiprocessing
import threading
from dataclasses import replace

import pytest

from harness.domain import TRUNCATED, Candidate, DeviceError, Finding, Problem, Subject
from harness.evaluation.evaluator import JudgeSettings
from harness.executors.local import LocalExecutor, LocalSettings, Task, hold_device

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
        settings = LocalSettings(**{"cache": build_cache} | changes, judge=JudgeSettings(measure_time=False))
        reported = []
        with LocalExecutor(settings) as executor:
            executor.run(tasks, lambda stage, task, evaluation: reported.append((stage, task, evaluation)))
        return reported

    return run


def test_notes_on_the_answer_join_the_findings_and_explain_why_there_is_no_program(run_tasks):
    cut_off = Finding(check=TRUNCATED, severity="note", message="cut off at the limit of 9 tokens")
    chosen = Finding(check="extraction", severity="note", message="taken of 2 programs")
    tasks = [replace(make_task(None), notes=(cut_off,)), replace(make_task("not python (", sample=1), notes=(chosen,))]
    evaluations = [evaluation for stage, _, evaluation in run_tasks(tasks) if stage == "judge"]
    assert (evaluations[0].outcome, evaluations[0].message) == ("no_code", cut_off.message)
    assert cut_off in evaluations[0].findings
    assert chosen in evaluations[1].findings
    assert evaluations[1].message != chosen.message


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


def test_where_kernels_are_emulated_verdicts_are_there_before_everything_is_built(run_tasks):
    tasks = [make_task(GOOD, language="cuda", sample=number) for number in range(4)]
    reported = run_tasks(tasks, device="emulated", jobs=1)
    assert [stage for stage, *_ in reported] == ["build", "build", "judge", "judge"] * 2
    assert [task.subject.sample for stage, task, _ in reported if stage == "judge"] == [0, 1, 2, 3]


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


def hold_until(name, entered, leave):
    with hold_device(name):
        entered.set()
        leave.wait(120)


def test_two_processes_do_not_hold_one_device_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    context = multiprocessing.get_context("spawn")
    entered, leave, second = context.Event(), context.Event(), threading.Event()
    other = context.Process(target=hold_until, args=("cpu", entered, leave))
    other.start()
    assert entered.wait(60)
    with hold_device("cuda:0"):
        pass
    waiting = threading.Thread(target=hold_until, args=("cpu", second, leave))
    waiting.start()
    assert not second.wait(0.3)
    leave.set()
    assert second.wait(60)
    other.join()
    waiting.join()


# Taken by the emulated device, and refused by nvcc, which alone defines this macro.
REFUSED = f"""{HEAD}from torch.utils.cpp_extension import load_inline
CUDA = "#ifdef __NVCC_DIAG_PRAGMA_SUPPORT__\\n#error not for nvcc\\n#endif\\n__global__ void k(float* x) {{{{ }}}}"
load_inline("refused", cpp_sources="", cuda_sources=CUDA, no_implicit_headers=True, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.timeout(900)
def test_nvcc_is_asked_after_the_emulated_verdict_and_its_refusal_counts(run_tasks):
    tasks = [
        make_task(source.format(), language="cuda", sample=number) for number, source in enumerate((CUDA, REFUSED))
    ]
    reported = run_tasks(tasks, device="emulated")
    built = [stage for stage, _, _ in reported].count("build")
    assert [stage for stage, _, _ in reported] == ["build"] * built + ["judge"] * 2
    taken, refused = (evaluation for stage, _, evaluation in reported if stage == "judge")
    assert (refused.outcome, "not for nvcc" in refused.message) == ("build_error", True)
    assert taken.outcome == "correct"
    phases = [name for name, _ in taken.phases_s]
    assert phases.index("nvcc") > phases.index("correctness")


@pytest.mark.parametrize(("count", "made"), [(2, 0), (3, 1)])
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_where_more_than_two_candidates_come_what_fast_builds_need_is_made_first(run_tasks, count, made, tmp_path):
    source = f"""{HEAD}from torch.utils.cpp_extension import load_inline
ext = load_inline("many", functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b) {{{{ return a + b * ONE; }}}}")
class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.run(a, b)
"""
    tasks = [make_task(source.format().replace("ONE", "1." + "0" * number), sample=number) for number in range(count)]
    reported = run_tasks(tasks, cache=tmp_path / "cache")
    judged = [evaluation for stage, _, evaluation in reported if stage == "judge"]
    assert {one.outcome for one in judged} == {"correct"}
    assert len(list((tmp_path / "cache" / "kits").glob("header-*/ready"))) == made
    assert {(one.build.lane, bool(one.build.reason)) for one in judged} <= {("fast", False), ("plain", True)}
    assert sum(one.build.lane == "fast" for one in judged) == max(0, count - 1) * made
