"""Code of problem files that ends its process, or does not end."""

import mmap
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from harness.domain import Problem, ProblemError, ReferenceStopped
from harness.evaluation.correctness.truth import run_reference
from harness.problems import watched_process
from harness.problems.discovery import read_problem
from harness.problems.loading import load_problem
from harness.problems.shrink import EMULATED_BUDGET, reduce_problem
from harness.problems.watched_process import (
    DEFAULT_LIMIT_S,
    MEMORY_BYTES,
    ProcessEnded,
    WatchedProcess,
    limit_reference,
    read_init_inputs,
    read_steps,
    run_apart,
    set_reference_limit,
    start_ahead,
)
from harness.protocol.process_tree import state_of

SOURCE = """
import os, sys, time
import torch

n = 4
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
STEPS = [
    ("init", "get_init_inputs()"),
    ("construct", "Model(*get_init_inputs())"),
    ("inputs", "get_inputs()"),
    ("forward", "forward"),
]
WATCHED = """
import ctypes, itertools, os, signal, subprocess, sys, time
from harness.problems.watched_process import limit_reference, set_reference_limit
from harness.problems.watched_process import connect

line, (limit_s,) = connect(sys.argv[1:])
set_reference_limit(float(limit_s))
with limit_reference("s/p.py", "an earlier step"):
    pass
# outside
with limit_reference("s/p.py", "forward"):
    # inside
    pass
line.send("done")
"""


@pytest.fixture
def short_limit():
    set_reference_limit(0.3)
    yield
    set_reference_limit(DEFAULT_LIMIT_S)


def problem_that_runs(code, place):
    return Problem(name="odd", suite="mine", source=SOURCE.replace(f"# {place}", code))


def use(problem):
    loaded = load_problem(problem, "full")
    return run_reference(loaded, loaded.make_model(0, CPU), loaded.make_inputs(0, CPU))


def watch(code, place="inside", limit_s=60.0):
    process = WatchedProcess(WATCHED.replace(f"# {place}", code), [str(limit_s)])
    try:
        return process.receive()
    finally:
        process.kill()


def require_end(note):
    """Of the process whose number a file holds."""
    process = int(note.read_text())
    thread, deadline_s = process, time.monotonic() + 20
    while state_of(process, thread) not in ("", "Z", "X"):
        assert time.monotonic() < deadline_s, "it still runs"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("os._exit(0)", ", with exit code 0"),
        ("os.execv('/bin/true', ['true'])", ", with exit code 0"),
        ("os.execv('/bin/false', ['false'])", ", with exit code 1"),
        ("os.abort()", " by SIGABRT"),
        ("ctypes.string_at(0)", " by SIGSEGV"),
        ("os.kill(os.getpid(), 40)", " by signal 40"),
        ("subprocess.Popen(['sleep', '1000'], close_fds=False); os._exit(0)", ", with exit code 0"),
    ],
)
@pytest.mark.quick(3)
def test_a_step_that_ends_its_process_is_named_with_how_it_ended(code, end):
    with pytest.raises(ReferenceStopped) as raised:
        watch(code)
    assert str(raised.value).startswith(f"s/p.py: forward ends the process{end};")


@pytest.mark.parametrize(
    "code",
    [
        "sum(itertools.repeat(0))",
        "while True:\n        try: time.sleep(1)\n        except BaseException: pass",
        "ctypes.CDLL(None).pause()",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "os.execv('/bin/sleep', ['sleep', '1000'])",
    ],
)
@pytest.mark.quick(2)
def test_a_step_that_does_not_end_is_killed_at_its_limit(code):
    with pytest.raises(ReferenceStopped, match=r"s/p\.py: forward did not end within 0\.5 s.*--reference-timeout"):
        watch(code, limit_s=0.5)


@pytest.mark.parametrize(
    "code",
    [
        "os.closerange(0, 256)",
        "os.closerange(3, 1 << 16)",
        "os.close(int(sys.argv[1]))",
        "os.dup2(os.open('/dev/null', os.O_RDWR), int(sys.argv[1]))",
        "os.closerange(3, 256); raise ValueError",
        "os.closerange(3, 256); time.sleep(1000)",
    ],
)
def test_a_step_that_closes_the_connection_of_its_process_is_named(code, monkeypatch):
    monkeypatch.setattr(watched_process, "END_S", 0.5)
    with pytest.raises(ReferenceStopped, match=r"s/p\.py: forward closes descriptors of the process; remove calls"):
        watch(code)


@pytest.mark.parametrize("error", ["GeneratorExit", "StopIteration", "Own", "asyncio.CancelledError"])
@pytest.mark.parametrize(("place", "step"), STEPS)
def test_whatever_a_step_raises_is_an_error_that_names_line_and_step(place, step, error):
    problem = problem_that_runs(f"raise {error}", place)
    own = "import asyncio\nclass Own(BaseException):\n    def __str__(self): raise ValueError\n"
    with pytest.raises(ProblemError) as raised:
        use(replace(problem, source=f"{own}{problem.source}"))
    name = error.removeprefix("asyncio.")
    assert re.fullmatch(rf"mine/odd\.py, line \d+: {re.escape(step)} raised {name}", str(raised.value))


@pytest.mark.parametrize("code", ["raise KeyboardInterrupt", "os.system('kill -INT $PPID'); raise KeyboardInterrupt"])
def test_an_interrupt_that_a_file_raises_is_its_error(code):
    with pytest.raises(ProblemError, match=r"odd\.py, line \d+: get_init_inputs\(\) raised KeyboardInterrupt$"):
        read_init_inputs(problem_that_runs(code, "init"), "full")


def test_the_interrupt_of_a_user_is_no_error_of_a_step():
    with pytest.raises(KeyboardInterrupt), limit_reference("s/p.py", "forward"):
        signal.raise_signal(signal.SIGINT)


def test_a_process_that_just_starts_ends_without_a_word():
    read_end, write_end = os.pipe()
    process = WatchedProcess("import sys\nfrom harness.problems.watched_process import connect\n"
        "line, _ = connect(sys.argv[1:])\ntry: line.recv()\nexcept EOFError: pass", output=write_end)  # fmt: skip
    process.end(60)
    assert not process.is_running
    process.kill()
    os.close(write_end)
    with os.fdopen(read_end) as printed:
        assert printed.read() == ""


def test_processes_of_a_killed_step_end_with_it(tmp_path):
    note = tmp_path / "pid"
    with pytest.raises(ReferenceStopped):
        watch(f"open({str(note)!r}, 'w').write(str(subprocess.Popen(['sleep', '1000']).pid)); os.abort()")
    require_end(note)


def test_an_end_between_steps_is_not_blamed_on_one():
    with pytest.raises(ProcessEnded, match="ended with exit code 7"):
        watch("os._exit(7)", "outside")


def test_processes_that_a_step_forks_end_as_usual():
    assert watch("os.fork() or os._exit(7)") == "done"


@pytest.mark.parametrize("end", ["sys.exit(0)", "exit(3)", "raise SystemExit", "sys.exit('done')"])
@pytest.mark.parametrize(("place", "step"), STEPS)
def test_a_step_that_exits_is_an_error_that_names_problem_and_step(place, step, end):
    with pytest.raises(ReferenceStopped) as raised:
        use(problem_that_runs(end, place))
    assert str(raised.value).startswith(f"mine/odd.py: {step} ends the process, with exit code")


def test_a_module_level_that_exits_is_an_error():
    with pytest.raises(ReferenceStopped, match="module level ends the process"):
        load_problem(Problem(name="odd", suite="mine", source=f"{SOURCE}\nimport sys; sys.exit()\n"), "full")


def test_a_search_for_sizes_does_not_go_on_after_an_exit():
    with pytest.raises(ReferenceStopped):
        reduce_problem(problem_that_runs("sys.exit()", "forward"), EMULATED_BUDGET)


def test_cases_that_are_never_listed_are_an_error(tmp_path, short_limit):
    file = tmp_path / "p.py"
    file.write_text(f"{SOURCE}\ndef get_cases():\n    return [sum(range(10 ** 15))]\n")
    with pytest.raises(ProblemError, match=r"get_cases\(\) did not end within 0\.3 s"):
        read_problem(file, "s")


def test_after_an_end_the_next_call_has_a_process_again():
    with pytest.raises(ReferenceStopped, match="ended with exit code 3"):
        run_apart(os._exit, 3)
    assert run_apart(abs, -1) == 1


def test_a_process_that_was_started_ahead_runs_the_next_call():
    with pytest.raises(ReferenceStopped):
        run_apart(os._exit, 0)
    start_ahead()
    started = list(watched_process._started)
    start_ahead()
    assert watched_process._started == started
    assert run_apart(os.getpid) == started[0]._process.pid


def test_a_process_of_calls_ends_with_its_parent_whatever_it_runs(tmp_path):
    parent = f"""
import os, threading, time
from harness.problems.watched_process import run_apart
code = "echo $$ > {tmp_path}/started; echo $PPID > {tmp_path}/pid; exec sleep 1000"
threading.Thread(target=run_apart, args=(os.system, code), daemon=True).start()
while not os.path.exists("{tmp_path}/pid") or not os.path.getsize("{tmp_path}/pid"):
    time.sleep(0.05)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", parent], check=False, timeout=60)
    require_end(tmp_path / "pid")
    require_end(tmp_path / "started")


def test_a_step_in_a_process_that_is_not_watched_changes_nothing():
    with limit_reference("s/p.py", "a step"):
        assert run_apart(os.getpid) != os.getpid()


@pytest.mark.parametrize(
    "written", [b"[[1]]", b"[1]", b"{}", b'[["a", "b", "c"]]', b"[" * 60_000, b"\xff", b'[["a", 1, {}]]']
)
def test_step_forged_in_shared_memory_is_ignored(written):
    memory = mmap.mmap(-1, MEMORY_BYTES)
    memory[: len(written) + 1] = written + b"\0"
    assert read_steps(memory) == []


def test_the_memory_of_steps_cannot_be_cut():
    program = "import os, sys; os.ftruncate(int(sys.argv[2]), 0)"
    process = WatchedProcess(f"import sys\ntry:\n    {program}\nexcept PermissionError:\n    sys.exit(7)")
    with pytest.raises(ProcessEnded, match="ended with exit code 7"):
        process.receive_bytes()
