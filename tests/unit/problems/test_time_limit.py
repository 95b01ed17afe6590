"""Code of problem files that does not end."""

import os
import subprocess
import sys
import threading
import time

import pytest
import torch

from harness.domain import Problem, ProblemError, ReferenceTimeout
from harness.evaluation.correctness.truth import run_reference
from harness.problems.loading import load_problem
from harness.problems.shrink import EMULATED_BUDGET, reduce_problem
from harness.problems.time_limit import DEFAULT_LIMIT_S, limit_reference, set_reference_limit

SOURCE = """
import time
import torch

n = 4
def spin():
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        # construct
    def forward(self, x):
        # forward
        return x + 1

def get_inputs():
    # inputs
    return [torch.ones(n)]

def get_init_inputs():
    # init
    return []
"""
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def short_limit():
    set_reference_limit(0.3)
    yield
    set_reference_limit(DEFAULT_LIMIT_S)


def problem_that_hangs_at(place):
    return Problem(name="endless", suite="mine", source=SOURCE.replace(f"# {place}", "spin()"))


def use(problem):
    loaded = load_problem(problem, "full")
    return run_reference(loaded, loaded.make_model(0, CPU), loaded.make_inputs(0, CPU))


STEPS = [
    ("init", "get_init_inputs()"),
    ("construct", "Model(*get_init_inputs())"),
    ("inputs", "get_inputs()"),
    ("forward", "forward"),
]


@pytest.mark.parametrize(("place", "step"), STEPS)
def test_a_step_that_does_not_end_is_an_error_that_names_problem_step_and_limit(place, step):
    with pytest.raises(ReferenceTimeout) as raised:
        use(problem_that_hangs_at(place))
    assert str(raised.value).startswith(f"mine/endless.py: {step} did not end within 0.3 s")
    assert "--reference-timeout" in str(raised.value)


@pytest.mark.parametrize("place", ["init", "forward"])
def test_a_step_that_waits_is_interrupted(place):
    source = problem_that_hangs_at(place).source.replace("spin()\n", "time.sleep(1e6)\n")
    began_s = time.monotonic()
    with pytest.raises(ReferenceTimeout):
        use(Problem(name="waiting", suite="mine", source=source))
    assert time.monotonic() - began_s < 30


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "exit(3)", "raise SystemExit", "sys.exit('done')"])
@pytest.mark.parametrize(("place", "step"), STEPS)
def test_a_step_that_ends_the_process_is_an_error_that_names_problem_and_step(place, step, end):
    source = problem_that_hangs_at(place).source.replace("import time\n", "import os, sys, time\n")
    with pytest.raises(ProblemError) as raised:
        use(Problem(name="leaving", suite="mine", source=source.replace("spin()\n", f"{end}\n")))
    assert str(raised.value).startswith(f"mine/leaving.py: {step} ends the process, with exit code")


@pytest.mark.parametrize("end", ["import sys; sys.exit()", "from os import _exit; _exit(0)"])
def test_a_module_level_that_ends_the_process_is_an_error(end):
    with pytest.raises(ProblemError, match="module level ends the process"):
        load_problem(Problem(name="leaving", suite="mine", source=f"{SOURCE}\n{end}\n"), "full")


def test_processes_that_a_step_forks_end_as_usual():
    with limit_reference("a step"):
        child = os.fork()
        if not child:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_module_level_that_does_not_end_is_an_error():
    with pytest.raises(ReferenceTimeout, match="module level did not end"):
        load_problem(Problem(name="endless", suite="mine", source=SOURCE + "\nspin()\n"), "full")


def test_the_limit_holds_in_every_thread():
    raised = []

    def hang():
        try:
            use(problem_that_hangs_at("inputs"))
        except ProblemError as error:
            raised.append(error)

    threads = [threading.Thread(target=hang) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(error) for error in raised] == [ReferenceTimeout] * 3


def test_after_one_that_did_not_end_others_are_not_disturbed():
    with pytest.raises(ReferenceTimeout):
        use(problem_that_hangs_at("inputs"))
    assert use(problem_that_hangs_at("nothing")).tensors[0].tolist() == [2.0] * 4
    with limit_reference("a short step"):
        pass
    time.sleep(0.5)  # longer than the limit of the step that has ended


@pytest.mark.parametrize("place", ["inputs", "forward"])
def test_a_search_for_sizes_that_take_less_does_not_go_on_after_it(place):
    with pytest.raises(ReferenceTimeout):
        reduce_problem(problem_that_hangs_at(place), EMULATED_BUDGET)


def test_a_step_that_ended_leaves_its_thread_as_it_was():
    """A profiler works after it: a request for attention that is never met would hang it."""
    code = """
import sys
from harness.problems import time_limit

with time_limit.limit_reference("a step"):
    pass
time_limit.set_reference_limit(0.05)
try:
    with time_limit.limit_reference("an endless step"):
        while True:
            pass
except Exception as error:
    print(type(error).__name__)
events = []
sys.setprofile(lambda *event: events.append(event))
(lambda: None)()
sys.setprofile(None)
print(len(events) > 0)
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert finished.stdout.split() == ["ReferenceTimeout", "True"]
