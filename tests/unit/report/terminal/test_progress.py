"""How far an evaluation is, as told on stderr."""

import time

from harness.cli.progress import show_slow_steps, show_steps
from harness.executors.executor import DeviceStatus, ExecutorStatus
from harness.report.terminal.search_progress import Step, TimeLeft, count_finished, read_steps


class FixedExecutor:
    def __init__(self, *devices, building=0, builds=(), waits_for=""):
        self._status = ExecutorStatus(building=building, builds=dict(builds), devices=devices, waits_for=waits_for)

    def status(self):
        return self._status


def describe_at(time_left, now_s, **counts):
    return time_left.describe(Step(name="evaluating", total=26, **counts), now_s)


def test_neither_the_start_nor_the_first_task_counts_for_the_estimate():
    time_left = TimeLeft()
    assert describe_at(time_left, 300.0, done=0, worked=0) == ""
    assert describe_at(time_left, 400.0, done=1, worked=1) == ""
    assert describe_at(time_left, 405.0, done=2, worked=2) == "about 2 min left"
    assert describe_at(time_left, 465.0, done=26, worked=26) == ""


def test_a_wait_for_headers_has_no_estimate_and_counts_for_none():
    time_left = TimeLeft()
    assert describe_at(time_left, 10.0, done=1, worked=1) == ""
    assert describe_at(time_left, 20.0, done=2, worked=2, waits=True, note="waits") == "waits"
    assert describe_at(time_left, 120.0, done=3, worked=3) == ""
    assert describe_at(time_left, 125.0, done=4, worked=4) == "about 2 min left"


def test_only_tasks_of_late_count():
    time_left = TimeLeft()
    for task in range(12):
        said = describe_at(time_left, 100.0 * task, done=task, worked=task)
    for task in range(12, 20):
        said = describe_at(time_left, 1100.0 + task, done=task, worked=task)
    assert said == "about 7 s left"


def test_the_time_left_only_falls_while_nothing_finishes():
    time_left = TimeLeft()
    describe_at(time_left, 0.0, done=1, worked=1)
    assert describe_at(time_left, 60.0, done=2, worked=2) == "about 24 min left"
    assert describe_at(time_left, 360.0, done=2, worked=2) == "about 19 min left"
    assert describe_at(time_left, 360.0, done=1, worked=2) == "about 19 min left", "a task that another device gave up"
    assert describe_at(time_left, 360.0, done=14, worked=2) == "about 7 min left", "twelve were cached"


def test_cached_and_refused_builds_take_no_time():
    assert count_finished({"built": 2, "cached": 40, "failed": 1, "refused": 7, "timeout": 1, "fast": 2}) == 4


def test_builds_and_verdicts_are_counted_while_both_go_on():
    cpu = DeviceStatus(name="cpu", waiting=3, running=1, done=2)
    executor = FixedExecutor(cpu, building=2, builds={"built": 4, "running": 1})
    build, evaluation = read_steps(executor, 10, (2, 1), builds=(10, 8))
    assert (build.done, build.note) == (4, "1 running, 4 built, 0 cached, 0 failed, 5 waiting")
    assert (evaluation.name, evaluation.done, evaluation.note) == ("evaluating", 2, "2 of 10, 1 correct")


def test_programs_without_extensions_do_not_wait_for_builds():
    cpu = DeviceStatus(name="cpu", waiting=1, running=1, done=0)
    (evaluation,) = read_steps(FixedExecutor(cpu), 10, (0, 0), builds=(0, 0))
    assert (evaluation.name, evaluation.note) == ("evaluating", "0 of 10")
    build, _ = read_steps(FixedExecutor(cpu), 10, (0, 0), builds=(3, 2))
    assert (build.done, build.total, build.note) == (1, 3, "0 built, 0 cached, 0 failed, 2 waiting")


def test_a_build_that_runs_in_an_evaluation_is_said():
    device = DeviceStatus(name="emulated", waiting=0, running=1, done=0)
    executor = FixedExecutor(device, builds={"running": 2, "precompiling": 1})
    build, _ = read_steps(executor, 1, (0, 0), builds=(1, 1))
    assert build.note == (
        "2 running, 0 built, 0 cached, 0 failed, 0 waiting; "
        "headers are precompiled, once per machine, in half a minute or more"
    )


def test_a_wait_for_another_process_is_said():
    cpu = DeviceStatus(name="cpu", waiting=1, running=1, done=0)
    executor = FixedExecutor(cpu, waits_for="another harness process")
    _, evaluation = read_steps(executor, 2, (0, 0), builds=(2, 2))
    assert evaluation.note == "0 of 2, waiting for another harness process"


def test_the_start_of_the_evaluator_processes_is_said():
    cpu = DeviceStatus(name="cpu", waiting=2, running=0, done=0)
    (evaluation,) = read_steps(FixedExecutor(cpu), 2, (0, 0), builds=(0, 0))
    assert evaluation.note == "0 of 2, starting PyTorch"
    cpu = DeviceStatus(name="cpu", waiting=1, running=0, done=1)
    (evaluation,) = read_steps(FixedExecutor(cpu), 2, (1, 1), builds=(0, 0))
    assert evaluation.note == "1 of 2, 1 correct"


def test_several_gpus_have_a_bar_each_with_what_they_are_to_expect():
    gpus = [DeviceStatus(name=f"cuda:{index}", waiting=index, running=index, done=4) for index in range(2)]
    *_, first, second = read_steps(FixedExecutor(*gpus), 20, (8, 8), builds=(0, 0))
    assert (first.name, first.total, first.note) == ("cuda:0", 9, "4 done, 0 waiting, idle")
    assert (second.name, second.total, second.note) == ("cuda:1", 11, "4 done, 1 waiting")


def test_progress_without_a_terminal_prints_occasional_lines(capsys):
    evaluation = Step(name="evaluating", total=2, note="0 of 2")
    lines = []
    with show_steps(lambda: [Step(name="building", total=2, note="0 built"), evaluation], line_every_s=0.01):
        while len(lines) < 3:
            lines += capsys.readouterr().err.splitlines()
            time.sleep(0.01)
        evaluation.done, evaluation.worked, evaluation.note = 2, 2, "2 of 2, 1 correct"
    assert set(lines) == {"building: 0 built; evaluating: 0 of 2"}
    assert capsys.readouterr().err.splitlines()[-1] == "building: 0 built; evaluating: 2 of 2, 1 correct"


def test_only_a_step_that_takes_long_is_named(capsys):
    now_s = time.monotonic()
    steps = [("mine/slow.py: forward", 600.0, now_s + 590.0), ("mine/new.py: forward", 600.0, now_s + 600.0)]
    with show_slow_steps("checking", lambda: steps):
        pass
    assert capsys.readouterr().err == "checking slow: forward, 10 s (limit 600 s, --reference-timeout)\n"
