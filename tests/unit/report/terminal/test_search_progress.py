"""What is shown while a search over turns runs."""

import time

import pytest
from rich.console import Console

from harness.analysis.metrics import Price
from harness.cli.progress import show_search
from harness.domain import Completion, SampleKey
from harness.executors.executor import DeviceStatus, ExecutorStatus
from harness.report.terminal.search_progress import SearchProgress, render_search
from harness.search.history import History, Turn


def make_key(problem="add", sample=0):
    return SampleKey(run="r", problem=problem, sample=sample)


@pytest.fixture
def history_of(evaluation_of):
    """Of one sample, by the speedups of its turns; None: wrong values."""

    def make(*speeds):
        verdicts = [evaluation_of("correct" if one else "wrong_value", one) for one in speeds]
        return History(turns=tuple(Turn(number=number, evaluation=one) for number, one in enumerate(verdicts)))

    return make


def render(progress, *, most_problems=20):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(render_search(progress, most_problems=most_problems))
    console.file.close()
    return console.export_text().splitlines()


def test_the_best_of_a_problem_has_its_interval_and_turn(history_of):
    progress = SearchProgress([make_key(sample=0), make_key(sample=1)])
    progress.update(make_key(sample=0), history_of(None, 1.2))
    progress.update(make_key(sample=1), history_of(2.5))
    progress.end(make_key(sample=1))
    (row,) = [line for line in render(progress) if line.startswith("add")]
    assert row.split() == ["add", "1/2", "3", "2.50x", "[2.40,", "2.60]", "(sample", "1,", "turn", "0)"]


def test_tokens_cost_and_time_by_stage_are_summed(evaluation_of):
    progress = SearchProgress([make_key()], price=Price(model="m", prompt_usd=1.0, completion_usd=10.0))
    for _ in range(2):
        progress.add_answer(Completion(text="x", latency_s=30.0), (50_000, 2_000))
    phases = (("build", 20.0), ("load", 25.0), ("correctness", 2.0), ("timing", 3.0))
    progress.add_verdict(evaluation_of("correct", extra={"phases_s": phases}))
    shown = render(progress)
    assert "tokens 100,000 asked, 4,000 answered, 0.1400 USD" in shown
    assert "asking 60 s, building 25 s, evaluating 5 s" in shown


def test_work_in_flight_is_counted_by_stage():
    device = DeviceStatus(name="cpu", waiting=1, running=1, done=0)
    status = ExecutorStatus(building=1, builds={}, devices=(device,))
    keys = [make_key(sample=number) for number in range(6)]
    progress = SearchProgress(keys, read_status=lambda: status)
    with (
        progress.at(keys[0], "waiting to ask"), progress.at(keys[0], "asking"), progress.at(keys[1], "waiting to ask"),
        progress.at(keys[2], "evaluating"), progress.at(keys[3], "evaluating"), progress.at(keys[4], "evaluating"),
    ):  # fmt: skip
        expected = "now 1 waiting to ask, 1 asking (longest 0 s), 1 building, 1 on a device, 1 waiting for a device"
        assert " ".join(render(progress)[-2:]).replace("  ", " ").endswith(expected)
    begun = SearchProgress(keys).describe_totals()
    assert begun[-1] == "now idle" and not any("building" in line for line in begun)


def test_problems_in_work_come_first_where_not_all_fit():
    keys = [make_key(f"problem_{number}") for number in range(30)]
    progress = SearchProgress(keys)
    with progress.at(keys[29], "asking"):
        shown = render(progress, most_problems=3)
    assert [line.split()[0] for line in shown if line.startswith("problem_")] == [
        "problem_29",
        "problem_0",
        "problem_1",
    ]
    assert "and 27 more problems" in shown


def test_without_a_terminal_lines_of_80_columns_name_only_changed_problems(history_of, capsys):
    progress = SearchProgress([make_key(), make_key("a_problem_with_a_long_name" * 2)], head="run r")
    with show_search(progress, line_every_s=0.02):
        progress.update(make_key(), history_of(None, 1.2))
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and "add:" not in (shown := capsys.readouterr().err):
            time.sleep(0.02)
        capsys.readouterr()
        progress.update(make_key("a_problem_with_a_long_name" * 2), history_of(None, 1.5))
    last = capsys.readouterr().err
    assert "add: samples 0/1, turns 2, best 1.20x [1.10, 1.30] (sample 0, turn 1)" in shown
    assert "best 1.50x [1.40, 1.60]" in " ".join(last.split())
    assert "add:" not in last
    assert max(map(len, (shown + last).splitlines())) <= 80
