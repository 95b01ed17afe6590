import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from shared_bench import TINY_PROBLEM

from harness.domain import TRUNCATED, Candidate, DeviceError, Finding, Problem, UsageError
from harness.domain.build import LOCKED, PRECOMPILING
from harness.executors import executor as submission
from harness.executors import processes
from harness.executors.executor import Origin, run_tasks
from harness.executors.local import LocalExecutor
from harness.executors.locks import BUILD_TAKEN, hold_cores_to_time
from harness.executors.settings import LocalSettings

HEAD = "import torch\nfrom torch import nn\n"
GOOD = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
# Plain CUDA without a torch header: seconds instead of minutes.
CUDA = f"""{HEAD}from torch.utils.cpp_extension import load_inline
load_inline("plain", cpp_sources="", cuda_sources='extern "C" __global__ void k(float* x) {{{{ x[0] = 1; }}}}',
            no_implicit_headers=True, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""


def make_task(source, *, language="cpp", sample=0, problem_source=TINY_PROBLEM):
    problem = Problem(name="add", suite="tiny", source=problem_source)
    candidate = None if source is None else Candidate(source=source, language=language, rule="file")
    return submission.make_task(problem, candidate, Origin(run="r", sample=sample, model="m"), language=language)


@pytest.fixture(scope="module")
def open_executor(build_cache, tmp_path_factory):
    def make(builds_ahead=False, **changes):
        settings = LocalSettings(**{"cache": build_cache} | changes, fidelity="correctness")
        return LocalExecutor(settings, builds_ahead=builds_ahead)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("locks")))
        patch.setattr("tempfile.tempdir", None)
        yield make


@pytest.fixture(scope="module")
def shared_executor(open_executor):
    with open_executor(jobs=1) as executor:
        yield executor


@pytest.fixture
def evaluate(open_executor, shared_executor):
    """The verdicts in the order of the tasks; with changes by an executor of its own."""

    def run(tasks, **changes):
        found = {}
        with open_executor(**changes) if changes else nullcontext(shared_executor) as executor:
            run_tasks(executor, tasks, lambda task, evaluation: found.setdefault(id(task), evaluation))
        return [found[id(task)] for task in tasks]

    return run


@pytest.mark.slow
def test_notes_on_an_answer_become_findings(evaluate):
    cut_off = Finding(check=TRUNCATED, severity="note", message="cut off at the limit of 9 tokens")
    chosen = Finding(check="extraction", severity="note", message="taken of 2 programs")
    tasks = [replace(make_task(None), notes=(cut_off,)), replace(make_task("not python (", sample=1), notes=(chosen,))]
    evaluations = evaluate(tasks)
    assert (evaluations[0].outcome, evaluations[0].message) == ("no_code", cut_off.message)
    assert cut_off in evaluations[0].findings
    assert chosen in evaluations[1].findings
    assert evaluations[1].message != chosen.message


def test_every_task_is_reported_once_with_its_verdict_and_its_device(evaluate):
    sources = [GOOD, GOOD.replace("+ b", "- b"), None, "not python ("]
    evaluated = evaluate([make_task(source, sample=number) for number, source in enumerate(sources)])
    assert [one.outcome for one in evaluated] == ["correct", "wrong_value", "no_code", "load_error"]
    assert [one.subject.sample for one in evaluated] == [0, 1, 2, 3]
    assert {one.subject.device for one in evaluated} == {"cpu"}


def test_broken_reference_is_a_problem_error(evaluate):
    broken = TINY_PROBLEM.replace("return a + b", "raise RuntimeError('reference')")
    failed, good = evaluate([make_task(GOOD, problem_source=broken), make_task(GOOD, sample=1)])
    assert (failed.outcome, good.outcome) == ("problem_error", "correct")
    assert "reference" in failed.message


@pytest.mark.parametrize("builds_ahead", [False, True])
def test_builds_ahead_are_prepared_while_devices_start(open_executor, builds_ahead):
    with hold_cores_to_time(), open_executor(builds_ahead=builds_ahead) as executor:  # held: it cannot end before
        assert executor.devices("cpp")
        assert executor.status().building == 0  # perhaps nothing is left to evaluate
        for _ in range(2):
            executor._find_pool(("cpu",))
        assert executor.status().building == builds_ahead


@pytest.mark.parametrize(("precompiling", "told"), [(0, BUILD_TAKEN), (1, "")])
def test_only_locks_of_others_are_reported_as_waits(open_executor, precompiling, told):
    with open_executor() as executor:
        counts = Counter({LOCKED: 1, PRECOMPILING: precompiling})
        executor._opened.append(SimpleNamespace(build_counts=counts, waits_for=""))
        assert executor.status().waits_for == told


@pytest.mark.slow
def test_several_threads_may_submit(open_executor):
    with open_executor(device="emulated") as executor, ThreadPoolExecutor(3) as pool:
        submitted = [make_task(GOOD, language="cuda", sample=number) for number in range(3)]
        futures = list(pool.map(executor.submit, submitted))
        assert [future.result().subject.sample for future in futures] == [0, 1, 2]
        assert [(one.name, one.waiting, one.done) for one in executor.status().devices] == [("emulated", 0, 3)]


# Neither its import nor its build ends.
ENDLESS = f"""{HEAD}import time
from torch.utils import cpp_extension
class ModelNew(nn.Module): pass
while True:
    time.sleep(0.05)
"""


def find_evaluator(executor):
    (process,) = executor._processes[-1:]
    return process._process._process.pid


@dataclass(frozen=True)
class Ended:
    """What became of an executor that was closed over unfinished tasks, and of the session of its evaluator."""

    while_building: str
    unfinished: tuple[BaseException | None, ...]
    refusal: str
    session: int
    is_left: bool


@pytest.fixture(scope="module")
def ended(open_executor):
    executor = open_executor(jobs=1)
    executor.submit(make_task(GOOD)).result()
    session = os.getsid(find_evaluator(executor))
    good = executor.submit(make_task(GOOD, sample=1))
    stuck = [executor.submit(make_task(ENDLESS, sample=2))]
    while not executor.status().building:
        time.sleep(0.01)
    while_building = good.result(timeout=100).outcome
    stuck.append(executor.submit(make_task(ENDLESS.replace("cpp_extension", "data"), sample=3)))  # nothing to build
    while not executor.status().devices[0].running:
        time.sleep(0.05)
    executor.close()
    unfinished = tuple(future.exception(timeout=20) for future in stuck)
    with pytest.raises(DeviceError) as refusal:
        executor.submit(make_task(GOOD))
    return Ended(while_building, unfinished, str(refusal.value), session, Path(f"/proc/{session}").exists())


@pytest.mark.slow
def test_candidates_are_evaluated_while_others_are_built(ended):
    assert ended.while_building == "correct"


@pytest.mark.slow
def test_program_is_evaluated_while_an_earlier_one_is_built(open_executor):
    with open_executor(builds_ahead=True, jobs=1) as executor:
        stuck, good = (executor.submit(make_task(source, sample=n)) for n, source in enumerate((ENDLESS, GOOD)))
        assert good.result(timeout=100).outcome == "correct"
        assert not stuck.done() and executor.status().building


@pytest.mark.slow
def test_evaluations_under_way_end_when_the_executor_is_closed(ended):
    assert [type(one) for one in ended.unfinished] == [DeviceError] * 2
    assert "closed" in ended.refusal


@pytest.mark.slow
def test_evaluation_ends_if_the_executor_closes_during_a_problem_step(open_executor):
    executor = open_executor(jobs=1)
    stuck = executor.submit(make_task(GOOD, problem_source=f"{TINY_PROBLEM}\nsum(range(10 ** 15))\n"))
    while not executor.status().devices[0].running:
        time.sleep(0.05)
    time.sleep(3)  # its module level runs
    executor._processes.append(SimpleNamespace(close=lambda: time.sleep(2)))  # as of another device, under load
    executor.close()
    assert isinstance(stuck.exception(timeout=20), DeviceError)


@pytest.mark.slow
def test_ended_evaluator_is_restarted_and_its_task_retried(shared_executor):
    before = shared_executor.submit(make_task(GOOD, sample=1)).result().outcome
    killed = find_evaluator(shared_executor)
    os.kill(killed, signal.SIGKILL)
    after = shared_executor.submit(make_task(GOOD, sample=2)).result().outcome
    assert (before, after) == ("correct", "correct")
    assert find_evaluator(shared_executor) != killed
    assert not Path(f"/proc/{killed}").exists()


@pytest.mark.slow
def test_no_process_is_left_behind(ended):
    assert os.getsid(0) != ended.session
    assert not ended.is_left


@pytest.mark.nvcc
@pytest.mark.slow
def test_cuda_candidate_on_a_cpu_is_built_and_loaded_only(evaluate):
    (evaluation,) = evaluate([make_task(CUDA, language="cuda")], device="cpu")
    assert evaluation.outcome == "not_run", evaluation.message
    assert evaluation.message.startswith(
        "built, linked and loaded 1 extension, but language cuda runs on cuda or emulated"
    )
    assert evaluation.subject.device == "none"
    assert len(evaluation.build.keys) == 1


@pytest.mark.slow
def test_plain_pytorch_on_an_unsuitable_device_names_its_language(evaluate):
    (evaluation,) = evaluate([make_task(GOOD)], device="emulated")
    assert evaluation.outcome == "not_run", evaluation.message
    assert "has no custom kernel, so it counts as language cpp" in evaluation.message
    assert "evaluate plain PyTorch with --language torch" in evaluation.message


@pytest.mark.slow
def test_an_evaluator_ends_with_its_parent_although_that_blocks_signals(open_executor):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as Ray does; the process inherits it
    try:
        with open_executor() as executor:
            executor.submit(make_task(GOOD)).result()
            (process,) = executor._processes
            process._process._line.close()
            assert process._process._process.wait(60) == 0
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_an_evaluator_that_ends_while_it_starts_prints_no_traceback(open_executor, monkeypatch, capfd, tmp_path):
    """Python prints an exception that a destructor raises, as of a lock of an import."""
    program = f"""
import pathlib, time
import harness.executors.evaluator_process as process
class Lock:
    def __del__(self):
        pathlib.Path({str(tmp_path / "starts")!r}).touch()
        time.sleep(0.5)
def start(*_):
    Lock()
    raise RuntimeError
process._open = start
process.main()
"""
    monkeypatch.setattr(processes, "_RUN", program)
    with open_executor() as executor:
        executor.submit(make_task(GOOD))
        while not (tmp_path / "starts").exists():
            time.sleep(0.05)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_evaluator_ends_with_its_parent_despite_an_early_signal(open_executor, monkeypatch):
    monkeypatch.setattr(processes, "_RUN", f"import signal; signal.pthread_kill = lambda *_: None; {processes._RUN}")
    with open_executor() as executor:
        executor.submit(make_task(GOOD)).result()
        (process,) = executor._processes
        process._process._line.close()
        assert process._process._process.wait(60) == 0


def test_executor_without_devices_of_a_kind_reports_failure(open_executor):
    with open_executor() as executor:
        pool = executor._find_pool(("cpu",))
        assert executor.status().failure == ""
        pool._give_up(pool._slots["cpu"], "cpu was lost 3 times in a row")
        assert executor.status().failure == "cpu was lost 3 times in a row"


# Gives the evaluator process a fake NVML, whose errors are the numbers in a file: real ones need a broken GPU.
FAKE_NVML = """
import sys
from pathlib import Path
from types import SimpleNamespace
from types import SimpleNamespace

class Nvml:
    NVMLError, nvmlEventTypeXidCriticalError = LookupError, 8
    nvmlEventSetCreate = nvmlDeviceRegisterEvents = staticmethod(lambda *_: None)

    @staticmethod
    def nvmlEventSetWait_v2(events, timeout_ms):
        numbers = list(map(int, Path(ERRORS).read_text().split()))
        Path(ERRORS).write_text(" ".join(map(str, numbers[1:])))
        return SimpleNamespace(eventData=numbers[0])

if any("evaluator_process" in word for word in sys.orig_argv):
    import harness.sandbox.devices
    harness.sandbox.devices.CpuDevice.open_nvml = lambda self: (Nvml, None)
"""


@pytest.mark.slow
def test_device_with_a_hardware_xid_error_leaves_service(open_executor, tmp_path, monkeypatch):
    errors = tmp_path / "errors"
    (tmp_path / "sitecustomize.py").write_text(FAKE_NVML.replace("ERRORS", repr(str(errors))))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    errors.write_text("31 43")
    with open_executor() as executor:
        assert executor.submit(make_task(GOOD)).result().outcome == "correct"
        assert (errors.read_text(), executor.status().lost) == ("", ())
        errors.write_text("31 79")
        with pytest.raises(DeviceError, match="Xid 79"):
            executor.submit(make_task(GOOD)).result()
        assert executor.status().failure.startswith("cpu cannot be used: Xid 79")
        assert executor.status().devices == ()


@pytest.mark.slow
def test_a_device_that_is_not_here_is_an_error(evaluate):
    with pytest.raises(UsageError, match="cuda:99 was requested"):
        evaluate([make_task(GOOD, language="cuda")], device="cuda:99")


# Taken by the emulated device, and refused by nvcc, which alone defines this macro.
REFUSED = f"""{HEAD}from torch.utils.cpp_extension import load_inline
CUDA = "#ifdef __NVCC_DIAG_PRAGMA_SUPPORT__\\n#error not for nvcc\\n#endif\\n__global__ void k(float* x) {{{{ }}}}"
load_inline("refused", cpp_sources="", cuda_sources=CUDA, no_implicit_headers=True, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""
TAKEN = REFUSED.replace("#error not for nvcc", "#warning not wrong")


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.timeout(900)
def test_nvcc_is_asked_after_the_emulated_verdict_and_its_refusal_counts(evaluate):
    tasks = [
        make_task(source.format(), language="cuda", sample=number) for number, source in enumerate((TAKEN, REFUSED))
    ]
    taken, refused = evaluate(tasks, device="emulated")
    assert (refused.outcome, "not for nvcc" in refused.message) == ("build_error", True)
    assert taken.outcome == "correct"
    phases = [name for name, _ in taken.phases_s]
    assert phases.index("nvcc") > phases.index("correctness")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_host_headers_are_precompiled_only_for_many_builds(evaluate, tmp_path):
    source = f"""{HEAD}from torch.utils.cpp_extension import load_inline
ext = load_inline("many", functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b) {{{{ return a + b * ONE; }}}}")
class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.run(a, b)
"""
    sources = [source.format().replace("ONE", "1." + "0" * number) for number in range(7)]
    tasks, kits = [make_task(one, sample=n) for n, one in enumerate(sources)], tmp_path / "cache" / "kits"
    for few, begun in ((tasks[:3], 0), (tasks[3:], 1)):
        evaluated = evaluate(few, cache=tmp_path / "cache")
        assert {one.outcome for one in evaluated} == {"correct"}
        assert {one.build.strategy for one in evaluated if one.build is not None} == {"fast"}
        assert len(list(kits.glob("host-header-*/headers"))) == begun
        assert len(list(kits.glob("binding-*/ready"))) == 1
