"""Completions in the shapes in which models answer, each with the program that a careful reader would submit.

`completions/NAME.txt` is the answer and `completions/NAME.expected` the program; without the latter there is none.
"""

import sys
from pathlib import Path

import pytest

from harness.generate.extraction.extractor import Found, find_code

FOLDER = Path(__file__).parent / "completions"
PROGRAM = "class ModelNew:\n    def forward(self, x):\n        return x + {}\n"


def find(text: str) -> Found:
    found = find_code(text)
    assert found is not None
    return found


def fenced(number: int) -> str:
    return f"```python\n{PROGRAM.format(number)}```\n"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_the_program_that_a_careful_reader_would_submit_is_found(name: str) -> None:
    expected = FOLDER / f"{name}.expected"
    found = find_code((FOLDER / f"{name}.txt").read_bytes().decode())
    assert (found and found.source.encode()) == (expected.read_bytes() if expected.exists() else None)


def test_chosen_program_has_the_reasons_for_and_against_the_others() -> None:
    text = f"Draft:\n{fenced(1)}\nSome version:\n{fenced(2)}\nFinal version:\n{fenced(3)}\nFor comparison:\n{fenced(4)}"
    extraction = find(text).extraction
    assert (extraction.rule, extraction.first_line, extraction.last_line) == ("fence", 17, 19)
    assert extraction.reason == 'the text submits it: "Final version:"'
    assert [(one.rule, one.first_line, one.last_line, one.reason) for one in extraction.alternatives] == [
        ("fence", 10, 12, 'the text submits the one taken: "Final version:"'),
        ("fence", 24, 26, 'the text rejects it: "For comparison:"'),
        ("fence", 3, 5, 'the text rejects it: "Draft:"'),
    ]


def test_a_program_that_does_not_parse_is_an_alternative() -> None:
    extraction = find(f"{fenced(1)}\nThen:\n```python\nclass ModelNew(:\n```\n").extraction
    assert [(one.rule, one.reason) for one in extraction.alternatives] == [("unparsable_fence", "it does not parse")]


def test_the_blocks_that_were_joined_are_named() -> None:
    text = "```python\nimport torch\n```\nand\n```python\nclass ModelNew(torch.nn.Module):\n    x = 1\n```\n"
    found = find(text)
    assert (found.extraction.rule, found.extraction.first_line, found.extraction.last_line) == ("joined", 6, 7)
    assert found.extraction.joined == ((2, 2),)


def test_no_more_than_some_of_many_alternatives_are_listed() -> None:
    extraction = find("".join(fenced(number) for number in range(300))).extraction
    assert len(extraction.alternatives) + extraction.more_alternatives == 299
    assert len(extraction.alternatives) == 50


@pytest.mark.parametrize(
    "unit",
    [
        "Text.\n```python\nvalue = 1\n```\n",
        "```\nclass ModelNew(\n",
        "```python\nclass ModelNew:\n    x = torch.zeros(n)\n```\nNaive:\n",
        "<pre><code>\n",
        "<tool_call>",
        "I submit option A.\n",
    ],
)
@pytest.mark.quick(2)
def test_twice_the_answer_takes_at_most_little_more_than_twice_the_calls(unit: str) -> None:
    assert count_calls(unit * 200) <= 2.3 * count_calls(unit * 100)


def test_a_fence_without_a_program_is_read_once() -> None:
    assert count_calls("Text.\n```python\nvalue = 1\n```\n" * 300) < 300 * 300


def count_calls(text: str) -> int:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        find_code(text)
    finally:
        sys.setprofile(None)
    return calls
