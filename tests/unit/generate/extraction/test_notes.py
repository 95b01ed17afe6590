"""What an evaluation notes of the answer that its candidate came from."""

import pytest

from harness.domain import Completion, Sample, SampleKey, Usage
from harness.generate.extraction.extractor import extract_candidate
from harness.generate.extraction.notes import note_sample

PROGRAM = "```python\nclass ModelNew:\n    x = 1\n```\n"


def note(text, finish_reason="stop", max_tokens=None, written=None, reasoning=None):
    completion = Completion(
        text=text, reasoning=reasoning, finish_reason=finish_reason, usage=Usage(completion_tokens=written)
    )
    return note_sample(
        Sample(
            key=SampleKey(run="r", problem="p", sample=0),
            model="m",
            prompt="plain",
            suite="core",
            language="cpp",
            completion=completion,
            candidate=extract_candidate(completion, "cpp"),
            max_tokens=max_tokens,
        )
    )


@pytest.mark.parametrize(
    ("max_tokens", "written", "words"),
    [
        (4096, 4096, "cut off at the limit of 4096 tokens, before it held a whole program"),
        (4096, None, ": raise --max-tokens"),
        (None, 1234, "cut off at the endpoint's limit, after 1234 tokens"),
        (None, None, ": set --max-tokens"),
    ],
)
def test_truncated_answer_without_a_program_names_limit_and_option(max_tokens, written, words):
    [found] = note("Let me think.", "length", max_tokens, written)
    assert (found.check, found.severity) == ("truncated", "note")
    assert words in found.message


def test_a_program_that_was_cut_off_half_way_is_noted():
    assert [found.check for found in note("```python\nclass ModelNew:\n    x = (", "length")] == ["truncated"]


@pytest.mark.parametrize(
    "text", ["Sorry.", "```python\nclass ModelNew:\n    x = (", "```python\nclass ModelNew:\n    x = 1\n"]
)
@pytest.mark.parametrize(
    ("reason", "check", "words"),
    [
        ("max_tokens", "truncated", "set --max-tokens"),
        ("content_filter", "filtered", "content filter or the model's refusal ended the answer"),
        ("SAFETY", "filtered", "(finish_reason SAFETY)"),
        ("", "no_finish_reason", "the endpoint gave no finish_reason"),
    ],
)
def test_half_an_answer_says_how_it_ended(text, reason, check, words):
    [found] = note(text, reason)
    assert (found.check, found.severity) == (check, "note")
    assert words in found.message


@pytest.mark.parametrize("reasoning", [None, "Hm."])
@pytest.mark.parametrize("reason", ["SAFETY", "content_filter", "refusal"])
def test_a_filtered_answer_without_content_has_one_note(reason, reasoning):
    for text in (None, " \n"):
        assert [found.check for found in note(text, reason, reasoning=reasoning)] == ["filtered"]


def test_a_refusal_is_quoted_and_shortened():
    [found] = note("I cannot help with that. " * 20, "refusal")
    assert found.check == "filtered"
    assert "says 'I cannot help with that." in found.message
    assert "...': change the prompt" in found.message
    assert len(found.message) < 500


@pytest.mark.parametrize(
    ("reason", "words"),
    [("tool_calls", "--tool-call-parser"), ("stop", "its finish_reason is stop"), ("", "it has no finish_reason")],
)
def test_an_answer_without_content_says_so(reason, words):
    for text in (None, " \n"):
        [found] = note(text, reason)
        assert found.check == "empty_answer"
        assert words in found.message


@pytest.mark.parametrize(("reason", "checks"), [("stop", ["in_reasoning"]), ("length", ["truncated", "in_reasoning"])])
def test_a_program_in_reasoning_names_the_mark(reason, checks):
    found = note(f"Sure.\n<think>\n{PROGRAM}", reason)
    assert [one.check for one in found] == checks
    assert "the text after the mark <think> in line 2 counts as reasoning" in found[-1].message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Sorry.", "stop"),
        (PROGRAM, "length"),
        (PROGRAM, "stop"),
        (PROGRAM, ""),
        ("Sorry.", None),
        (PROGRAM, "content_filter"),
    ],
)
def test_other_answers_are_whole(text, reason):
    assert note(text, reason) == ()


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_reasoning_without_content_names_the_reasoning_parser(text):
    [found] = note(text, reasoning=PROGRAM)
    assert found.check == "only_reasoning"
    assert "--reasoning-parser" in found.message


def test_of_several_programs_the_one_taken_and_the_others_are_named():
    [found] = note(f"{PROGRAM}\nFor comparison:\n\n{PROGRAM.replace('1', '2')}")
    assert found.check == "extraction"
    assert found.message == (
        "rule fence, lines 2 to 3; chosen from 2 programs in the answer: the text rejects the others"
    )
    assert found.evidence == 'not taken: rule fence, lines 9 to 10: the text rejects it: "For comparison:"'
