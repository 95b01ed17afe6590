"""Processes that occupy the one that waits for them."""

import time

import pytest
from built_evaluations import build_subject

from harness.builder.toolchain import probe_toolchain
from harness.domain import Problem
from harness.executors import processes
from harness.executors.device_pool import DeviceLost, Job
from harness.executors.evaluator_process import Start
from harness.executors.executor import Task
from harness.executors.processes import EvaluatorProcess
from harness.executors.settings import LocalSettings, Setup
from harness.sandbox.policy import explain_evaluator_failure, probe_isolation

pytestmark = pytest.mark.slow
READY = """
import os, sys
from harness.executors.evaluator_process import Builds, Ready, Waiting, encode_answer
from harness.problems.watched_process import connect
line, _ = connect(sys.argv[1:])
line.recv()
line.send_bytes(encode_answer(Ready(chip="CPU", lock="")))
line.recv()
while True:
    """
FLOODS = {
    "small": "line.send_bytes(encode_answer(Waiting(reason='for you')))",
    "large": "line.send_bytes(encode_answer(Builds(counts={'x' * (1 << 20): 1})))",
    "too large": "line.send_bytes(b'[' * (17 << 20))",
}
SUBJECT = build_subject()
JOB = Job(task=Task(subject=SUBJECT, problem=Problem(name="p", suite="s", source=""), candidate=None, owner="mallory"))


@pytest.fixture
def open_process(tmp_path, monkeypatch):
    if why := explain_evaluator_failure():
        pytest.skip(f"needs user namespaces: {why}")
    opened = []

    def start(program):
        monkeypatch.setattr(processes, "_RUN", program)
        isolation, toolchain = probe_isolation("none"), probe_toolchain()
        setup = Setup(settings=LocalSettings(cache=tmp_path), toolchain=toolchain, isolation=isolation)
        usual = {"device": "cpu", "checks": False, "floors": None, "alone": False, "build_cores": frozenset({0})}
        first = Start(setup=setup, is_sandboxed=True, **usual)
        opened.append(EvaluatorProcess(first, cores={0}, visible=None))
        opened[-1].wait_ready()
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.parametrize("flood", FLOODS)
def test_a_process_that_sends_without_end_is_lost(open_process, flood):
    process = open_process(READY + FLOODS[flood])
    with pytest.raises(DeviceLost, match="sent too much"):
        process.evaluate(JOB)


def test_a_process_that_prints_without_end_is_read_slowly(open_process, monkeypatch):
    monkeypatch.setattr(processes, "MOST_BYTES", 1 << 20)
    open_process(READY.replace("line.recv()\nwhile", "while") + "os.write(1, b'x' * 65536)")
    time.sleep(0.3)
    began_s = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - began_s < 0.3
