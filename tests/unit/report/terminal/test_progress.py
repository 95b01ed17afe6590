"""How far an evaluation is, as told on stderr."""

import time

from harness.report.terminal.progress import Step, count_finished, show_steps


def test_the_estimate_is_by_what_was_really_built():
    step = Step(total=10, began_s=time.monotonic() - 600)
    step.advance(done=5, worked=0, note="5 cached")
    assert step.describe_rest() == ""
    step.advance(done=6, worked=1, note="1 built, 5 cached")
    assert step.describe_rest() == "about 40 min left"
    step.advance(done=10, worked=5, note="")
    assert step.describe_rest() == ""


def test_what_was_cached_or_refused_took_no_time():
    assert count_finished({"built": 2, "cached": 40, "failed": 1, "refused": 7, "timeout": 1, "fast": 2}) == 4


def test_without_a_terminal_there_is_a_line_now_and_then_and_at_the_end(capsys):
    build, judge = Step(total=2, note="0 built"), Step(total=2, note="0 of 2")
    lines = []
    with show_steps(build, judge, line_every_s=0.01) as (refresh, _):
        while len(lines) < 3:
            lines += capsys.readouterr().err.splitlines()
            time.sleep(0.01)
        judge.advance(done=2, worked=2, note="2 of 2, 1 correct")
        refresh()
    assert set(lines) == {"building: 0 built; evaluating: 0 of 2"}
    assert capsys.readouterr().err.splitlines()[-1] == "building: 0 built; evaluating: 2 of 2, 1 correct"
