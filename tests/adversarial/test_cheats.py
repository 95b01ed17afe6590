"""What a corpus file cannot say: how two honest programs fare, and what happens beside a candidate. The attacks and the
honest controls themselves are in `attacks/` and `controls/`; see `test_corpus.py`."""

import math
import os
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

HEAD = """
import ctypes, gc, json, os, socket, struct, sys, threading, time
import torch
from torch import nn
"""

LINEAR_PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(32, 48)]

def get_init_inputs():
    return [48]
"""

BIG_PRODUCT = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(320, 320), torch.randn(320, 320)]

def get_init_inputs():
    return []
"""

PRODUCT = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
"""

PACKS_ITS_WEIGHTS = """
class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.packed = self.linear.weight.detach().t().contiguous()
    def forward(self, x):
        return torch.relu(torch.addmm(self.linear.bias, x, self.packed))
"""
WEIGHTS_TO_BE_LOADED = """
class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        torch.randn(7)
        self.linear = nn.Linear(size, size)
    def forward(self, x):
        return self.linear(x).clamp_min(0)
"""


CLOCK_TICKS = os.sysconf("SC_CLK_TCK")  # a second


def short_plan():
    from harness.evaluation.settings import TimingPlan

    return TimingPlan(min_blocks=12, max_blocks=20, budget_s=1.0)


@pytest.fixture(scope="module")
def quick_bench(open_bench):
    return open_bench(isolation="auto", call_s=2.0)


@pytest.mark.quick(1)
@pytest.mark.parametrize("noise", [False, True])
def test_an_honest_candidate_is_timed_and_not_suspect(quick_bench, noise):
    plan = replace(short_plan(), min_blocks=8, max_blocks=10, budget_s=0.5, allow_load=True)
    evaluation = quick_bench.evaluate(f"{HEAD}{PRODUCT}", BIG_PRODUCT, time=True, plan=plan, measure_noise=noise)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.baseline == "eager"
    assert 0.2 < evaluation.timing.speedup < 5.0  # of the same program, on a machine that may be busy


NAP = """
import time
class ModelNew(nn.Module):
    def forward(self, a, b):
        time.sleep(0.25)
        return a + b
"""


@pytest.mark.slow
def test_a_candidate_that_is_slower_every_time_is_not_timed_for_ever(quick_bench):
    plan = replace(short_plan(), allow_load=True)
    evaluation = quick_bench.evaluate(f"{HEAD}{NAP}", time=True, plan=plan)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.verdict == "slower"
    assert 0 < len(evaluation.timing.blocks) < plan.min_blocks


HOG = """
import subprocess
CODE = "while True: pass  # __MARK__"
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        subprocess.Popen([sys.executable, "-c", CODE], start_new_session=True)
    def forward(self, a, b):
        return a + b
"""


def test_background_work_of_a_candidate_does_not_run_during_baseline_calls(quick_bench, processes_with):
    mark = uuid.uuid4().hex
    with quick_bench.open_session(HEAD + HOG.replace("__MARK__", mark)) as (session, reference):
        session.construct(1, ())
        wait_for_work(processes_with, mark)
        with session.paused():
            before = spent_ticks(processes_with(mark))
            time.sleep(0.3)
            during = spent_ticks(processes_with(mark)) - before
        wait_for_work(processes_with, mark, beyond=before + during)
        assert reference.model is not None
    assert during == 0
    assert processes_with(mark) == []


def test_it_does_not_either_where_nobody_waited_for_it_to_be_stopped(quick_bench, processes_with):
    mark = uuid.uuid4().hex
    hog, nap = HEAD + HOG.replace("__MARK__", mark), HEAD + NAP
    with quick_bench.open_session(hog) as (mine, reference), quick_bench.open_session(nap) as (theirs, _):
        for session in (mine, theirs):
            session.construct(1, ())
        wait_for_work(processes_with, mark)
        inputs = reference.loaded.make_inputs(5, reference.device.torch_device)
        for session in (mine, theirs):
            session.prepare_call(inputs)
            session.stage(inputs)
        first = mine.call_timed()
        before, began_s = spent_ticks(processes_with(mark)), time.monotonic()
        second = theirs.call_timed()
        spent_s, lasted_s = (spent_ticks(processes_with(mark)) - before) / CLOCK_TICKS, time.monotonic() - began_s
        assert math.isnan(first.evaluator_us)
        assert mine.complete(first).evaluator_us > first.called.reported_us
        assert theirs.complete(second).evaluator_us > second.called.reported_us
    assert lasted_s > 0.25
    assert spent_s < 0.1


def wait_for_work(processes_with, mark, beyond=0):
    deadline_s = time.monotonic() + 60
    while spent_ticks(processes_with(mark)) <= beyond:
        assert time.monotonic() < deadline_s, "the candidate's process did not work"
        time.sleep(0.02)


def spent_ticks(processes):
    """Processor time of these processes, in clock ticks."""
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total


@pytest.mark.parametrize(
    ("source", "weights"),
    [(PACKS_ITS_WEIGHTS, "identical"), (WEIGHTS_TO_BE_LOADED, "loaded")],
    ids=["packed", "loaded"],
)
def test_honest_weights_are_made_equal(source, weights, quick_bench):
    evaluation = quick_bench.evaluate(HEAD + source, LINEAR_PROBLEM)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.correctness.weights == weights
