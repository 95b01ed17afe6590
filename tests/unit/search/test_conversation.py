"""The messages of a turn."""

from harness.domain import Prompt
from harness.search.strategy import Ask, make_prompt

FIRST = Prompt(name="plain", problem="add", language="cpp", text="Make it fast.")


def say(feedback):
    return f"turn {feedback.number}: {feedback.outcome}; told: {', '.join(feedback.attempts)}"


def read(prompt):
    return [(one.role, one.text) for one in prompt.messages]


def test_without_a_parent_the_problem_is_asked_alone(turn_of, history_of):
    assert make_prompt(FIRST, history_of(turn_of(0, "timeout")), Ask(parent=None), say) == FIRST


def test_programs_alternate_with_the_feedback_on_them(turn_of, history_of):
    history = history_of(turn_of(0, "build_error", source="a = 1\n"), turn_of(1, "no_code", source=None))
    assert read(make_prompt(FIRST, history, Ask(parent=1), say)) == [
        ("user", "Make it fast."),
        ("assistant", "```python\na = 1\n```\n"),
        ("user", "turn 0: build_error; told: "),
        ("assistant", "(The answer held no program.)"),
        ("user", "turn 1: no_code; told: "),
    ]


def test_turns_off_the_path_become_one_line_each(turn_of, history_of):
    history = history_of(turn_of(0, "correct"), turn_of(1, "timeout", parent=0), turn_of(2, "wrong_value", parent=0))
    assert read(make_prompt(FIRST, history, Ask(parent=0), say))[-1] == (
        "user", "turn 0: correct; told: turn 1: timeout, turn 2: wrong_value",
    )  # fmt: skip


def test_second_parent_is_shown_with_its_result_outside_the_list(turn_of, history_of, tell):
    turns = [turn_of(0, "correct", 2.0, source="a = 1\n"), turn_of(1, "correct", 3.0, source="b = '```'\n", parent=-1)]
    told = make_prompt(FIRST, history_of(*turns), Ask(parent=0, partner=1), tell).text
    assert "turn 1: correct, 3.00x as fast as eager" in told
    assert "````python\nb = '```'\n````" in told
    assert "Combine what makes each of the two programs fast" in told
    assert "## Other turns" not in told


def test_the_oldest_turns_that_do_not_fit_become_one_line_each(turn_of, history_of):
    history = history_of(*(turn_of(number, "timeout", source="x" * 400) for number in range(4)))
    prompt = make_prompt(FIRST, history, Ask(parent=3), say, context_tokens=250)
    assert [one.role for one in prompt.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert "told: turn 0: timeout, turn 1: timeout" in prompt.text


def test_the_last_program_is_shown_whatever_its_length(turn_of, history_of):
    history = history_of(turn_of(0, "timeout", source="x" * 10_000))
    assert len(make_prompt(FIRST, history, Ask(parent=0), say, context_tokens=1).messages) == 3


def test_a_program_cannot_close_its_own_fence(turn_of, history_of):
    prompt = make_prompt(FIRST, history_of(turn_of(0, "timeout", source='x = "```"\n')), Ask(parent=0), say)
    assert prompt.messages[1].text == '````python\nx = "```"\n````\n'


def test_other_messages_give_another_digest(turn_of, history_of):
    one, other = (
        make_prompt(FIRST, history_of(turn_of(0, "timeout", source=text)), Ask(parent=0), say) for text in "ab"
    )
    assert one.text == other.text
    assert len({FIRST.digest, one.digest, other.digest}) == 3
