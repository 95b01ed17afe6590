"""No program is taken from reasoning, in whatever form a model or server marks it."""

import json

import pytest

from harness.generate.extraction.blocks import explain_removal
from harness.generate.extraction.extractor import find_code

DRAFT, GOOD = "class ModelNew:\n    x = 'draft'\n", "class ModelNew:\n    x = 'good'\n"
REASONING = f"Let me try. Here is the final version to submit:\n\n```python\n{DRAFT}```\n\nThat is wrong."
ANSWER = f"The module below is fast.\n\n```python\n{GOOD}```\n"
# Openings by closing marks.
_NAMES = (
    "think thinking thought thoughts reasoning reason THINK seed:think mm:think ifm|think_fast longcat_think "
    "antThinking thought_process scratchpad analysis reflection inner_monologue CoT brainstorming"
)
TAGS = {
    **{f"</{name}>": f"<{name}>" for name in _NAMES.split()},
    "</think >": "<think >",
    "< / think>": "< think>",
    "</thought>": '<thought id="1"\n kind="x">',
    "&lt;/think&gt;": "&lt;think&gt;",
    "</thinking>": "<think>",
    "\u25c1/think\u25b7": "\u25c1think\u25b7",
    "[/THINK]": "[THINK]",
    "[unused17]": "[unused16]",
    "<|end_of_thought|>": "<|begin_of_thought|>",
    "<|END_THINKING|>": "<|START_THINKING|>",
    "<|/think|>": "<|think|>",
    "<|inner_suffix|>": "<|inner_prefix|>",
    "<|think:end|>": "<|think:start|>",
    "<|plamo:end_think:plamo|>": "<|plamo:begin_think:plamo|>",
    "<\uff5cend\u2581of\u2581thinking\uff5c>": "<\uff5cthinking\uff5c>",
    "<|close|>think<|sep|><|open|>response<|sep|>": "<|open|>think<|sep|>",
    "</redacted_reasoning>": "<redacted_reasoning>",
    "<channel|>": "<|channel>thought\n",
    "<|end|><|start|>assistant<|channel|>final<|message|>": "<|channel|>analysis<|message|>",
    "<|start|>assistant<|channel|>final <|constrain|>python<|message|>": "<|channel|>commentary<|message|>",
    "<|channel|>final <|constrain|>markdown<|message|>": "<|start|>assistant<|channel|>analysis code<|message|>",
    "\nassistantfinal": "analysis",
    "assistantfinal": "analysis\n",
    " assistant final ": "analysis ",
}
# Marks that only end reasoning which a mark has opened.
PAIRS = {
    **TAGS,
    "\n<answer>\n": "<think>",
    "\n<|begin_of_solution|>": "<|begin_of_thought|>",
    "\n<|START_RESPONSE|>": "<|START_THINKING|>",
    "<|end|>": "<|channel|>analysis<|message|>",
    "<|im_end|>\n<|im_start|>answer\n": "<|im_start|>think\n",
    "<|im_end|>\n<|im_start|>assistant\n": "/think\n<think>",
    "</details>": '<details type="reasoning" done="true">',
    "\nHere is my response:\n": "Here is my thought process:\n",
    "\n...done thinking.\n": "Thinking...\n",
}


def _find(text: str) -> str | None:
    found = find_code(text)
    return found and found.source


@pytest.mark.parametrize(("closing", "opening"), PAIRS.items())
def test_the_answer_after_reasoning_is_taken(opening: str, closing: str) -> None:
    for space in ("", "\n"):
        assert _find(f"{opening}{space}{REASONING}{space}{closing}{space}{ANSWER}") == GOOD
    assert _find(f"{opening}{REASONING}{closing}I give up.") is None


@pytest.mark.parametrize("opening", sorted({*TAGS.values()}))
def test_reasoning_that_never_ends_has_no_program(opening: str) -> None:
    assert _find(f"{opening}{REASONING}\nHmm, wait") is None


@pytest.mark.parametrize("closing", TAGS)
def test_text_before_a_closing_mark_alone_is_reasoning(closing: str) -> None:
    assert _find(f"{REASONING}\n{closing}\n{ANSWER}") == GOOD
    assert _find(f"{REASONING}\n{closing}\nI give up.") is None


@pytest.mark.parametrize("closing", [*TAGS, ""])
def test_reasoning_after_the_answer_has_no_program(closing: str) -> None:
    opening = TAGS.get(closing, "<think>")
    opening = f"assistant{opening}" if opening.startswith("analysis") else opening
    for between in ("\n", "That is it. "):
        ending = closing if "final" not in closing else ""
        assert _find(f"<think>{REASONING}</think>\n{ANSWER}{between}{opening}{REASONING}{ending}") == GOOD


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{REASONING}<think>{REASONING}</think>{REASONING}</think>{ANSWER}",
        f"<think>{REASONING}<think>{REASONING}</think>{ANSWER}",
        f"<think>{REASONING}<reasoning>{REASONING}</reasoning>{REASONING}</think>{ANSWER}",
        f"<think>{REASONING}<reasoning>{REASONING}</think>{ANSWER}",
        f"<think>```python\n{DRAFT}</think>{ANSWER}",
        f"<think>```python\n{DRAFT}```</think>{ANSWER}",
        f"<reasoning>```python\n{DRAFT}```</reasoning>{ANSWER}",
        f"<|channel|>analysis<|message|>{REASONING}<|end|><|start|>assistant<|channel|>analysis<|message|>{REASONING}"
        f"<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>",
        f"analysis{REASONING}assistantanalysis{REASONING}assistantfinal{ANSWER}",
        json.dumps({"message": {"reasoning_content": REASONING, "content": ANSWER}}),
        json.dumps({"message": {"content": f"<think>{REASONING}</think>{ANSWER}"}}),
        f"<think>{REASONING}</think>\n<tool_call>\n<parameter=thought>\n{DRAFT}</parameter>\n<parameter=code>\n{GOOD}"
        "</parameter>\n</tool_call>",
    ],
)
def test_nested_and_repeated_reasoning_has_no_program(text: str) -> None:
    assert _find(text) == GOOD


def test_reasoning_within_reasoning_that_never_ends_has_no_program() -> None:
    assert _find(f"<think>{REASONING}<reasoning>x</reasoning>{REASONING}") is None


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.submit <|constrain|>json<|message|>",
        "<|start|>assistant to=functions.submit<|channel|>commentary json<|message|>",
        "assistantcommentary to=functions.submit json",
    ],
)
def test_a_call_in_the_commentary_channel_is_an_answer(header: str) -> None:
    opening = "analysis" if header.startswith("assistant") else "<|channel|>analysis<|message|>"
    assert _find(f"{opening}{REASONING}<|end|>{header}{json.dumps({'code': GOOD})}<|call|>") == GOOD


@pytest.mark.parametrize(
    "program",
    [
        f"{GOOD}    y = 1  # <think>\n",
        f"{GOOD}    y = '<think>'\n",
        f"{GOOD}    y = [THINK] if a < think > b else 0\n",
        f"{GOOD}    y = '<|channel|>analysis<|message|>'\n",
        f"analysisResult = 1\n{GOOD}",
    ],
)
def test_marks_in_the_code_of_the_answer_are_no_reasoning(program: str) -> None:
    assert _find(f"Here it is:\n```python\n{program}```\n") == program


@pytest.mark.parametrize(
    "prose",
    ["I left out the <think> tags.", "Analysis: fast.", "analysis of the problem:", "Here is my thought process: fuse.",
     "Thinking...", "See `<reasoning>`.", "The final answer is below.", "<details><summary>Notes</summary>x</details>"],
)  # fmt: skip
def test_prose_before_the_answer_is_no_reasoning(prose: str) -> None:
    assert _find(f"{prose}\n\n{ANSWER}") == GOOD


MARKS = (
    "<think>", "<thinking>", "<seed:think>", "&lt;think&gt;", "[THINK]", "<|begin_of_thought|>",
    "<|channel|>analysis<|message|>", "</think>", "[/THINK]",
)  # fmt: skip


@pytest.mark.parametrize(
    "sentence",
    ["Let me skip {} and give the code.", "No {}, just code:", "As you asked, no {}.", "Here it is (without {}):",
     "({} omitted)", "I leave out **{}** here.", "Without {} or <analysis> it is shorter.", "I skip {}/<reasoning>!",
     "I avoid {}", "I write no {} First the code.", "There is no {}-style text.", "Use {} first, I was told."],
)  # fmt: skip
def test_a_mark_amid_a_sentence_is_no_reasoning(sentence: str) -> None:
    for said in map(sentence.format, MARKS):
        for text in (
            f"{said}\n\n{ANSWER}",
            f"{ANSWER}\n{said}\n\nUsage:\n```python\nModelNew()\n```\n",
            f"{said}\n\n{ANSWER}\n{said}",
        ):
            assert (_find(text), text) == (GOOD, text)


@pytest.mark.parametrize("before", ["Sure! ", "Okay. ", "Assistant: ", "Sure, ", "Sure ", "Reasoning: ", "assistant "])
def test_a_mark_before_a_sentence_opens_reasoning(before: str) -> None:
    for after in ("Let me see. ", "okay, ", "the user needs a kernel. ", "...", "\n", ""):
        text = f"{before}<think>{after}{REASONING}"
        assert (_find(text), text) == (None, text)
        text = f"{text} now </think> {ANSWER}"
        assert (_find(text), text) == (GOOD, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"I can do it.\n<think>\n{REASONING}", "after the mark <think> in line 2"),
        (f"<think>x</think>\n\n[THINK]{REASONING}", "after the mark [THINK] in line 3"),
        (f"{REASONING}\n</think>\nI give up.", "before the mark </think> in line 9"),
        (json.dumps({"content": f"<think>{REASONING}"}), "after the mark <think> in line 1"),
        (ANSWER, ""),
        ("<think>I cannot do it.</think>", ""),
    ],
)
def test_the_mark_that_makes_a_program_reasoning_is_named(text: str, reason: str) -> None:
    assert explain_removal(text) == reason
