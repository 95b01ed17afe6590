"""The messages of a turn."""

from harness.domain import Prompt
from harness.search.conversation import make_prompt

FIRST = Prompt(name="plain", problem="add", language="cpp", text="Make it fast.")


def say(feedback):
    return f"turn {feedback.number}: {feedback.outcome}; told: {', '.join(feedback.attempts)}"


def read(prompt):
    return [(one.role, one.text) for one in prompt.messages]


def test_without_a_parent_the_problem_is_asked_alone(turn_of, history_of):
    assert make_prompt(FIRST, history_of(turn_of(0, "timeout")), None, say) == FIRST


def test_programs_alternate_with_the_feedback_on_them(turn_of, history_of):
    history = history_of(turn_of(0, "build_error", source="a = 1\n"), turn_of(1, "no_code", source=None))
    assert read(make_prompt(FIRST, history, 1, say)) == [
        ("user", "Make it fast."),
        ("assistant", "```python\na = 1\n```\n"),
        ("user", "turn 0: build_error; told: "),
        ("assistant", "(The answer held no program.)"),
        ("user", "turn 1: no_code; told: "),
    ]


def test_turns_off_the_path_become_one_line_each(turn_of, history_of):
    history = history_of(turn_of(0, "correct"), turn_of(1, "timeout", parent=0), turn_of(2, "wrong_value", parent=0))
    assert read(make_prompt(FIRST, history, 0, say))[-1] == (
        "user", "turn 0: correct; told: turn 1: timeout, turn 2: wrong_value",
    )  # fmt: skip


def test_the_oldest_turns_that_do_not_fit_become_one_line_each(turn_of, history_of):
    history = history_of(*(turn_of(number, "timeout", source="x" * 400) for number in range(4)))
    prompt = make_prompt(FIRST, history, 3, say, context_tokens=250)
    assert [one.role for one in prompt.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert "told: turn 0: timeout, turn 1: timeout" in prompt.text


def test_the_last_program_is_shown_whatever_its_length(turn_of, history_of):
    history = history_of(turn_of(0, "timeout", source="x" * 10_000))
    assert len(make_prompt(FIRST, history, 0, say, context_tokens=1).messages) == 3


def test_a_program_cannot_close_its_own_fence(turn_of, history_of):
    prompt = make_prompt(FIRST, history_of(turn_of(0, "timeout", source='x = "```"\n')), 0, say)
    assert prompt.messages[1].text == '````python\nx = "```"\n````\n'


def test_other_messages_give_another_digest(turn_of, history_of):
    one, other = (make_prompt(FIRST, history_of(turn_of(0, "timeout", source=text)), 0, say) for text in "ab")
    assert one.text == other.text
    assert len({FIRST.digest, one.digest, other.digest}) == 3
