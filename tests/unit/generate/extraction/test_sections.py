"""Headings over programs: a program under a draft's heading loses to one under the answer's."""

import pytest

from harness.generate.extraction.extractor import find_code

PROGRAM = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    NAME = '{}'\n"
DRAFT, ANSWER = (f"```python\n{PROGRAM.format(name)}```\n" for name in ("draft", "answer"))
PROMISE = "Here's the corrected version:"
FORMS = [
    "# {}", "#### {}:", "## **{}**", "## {} ##", "### 1. {}", "### Step 2: {}", "**{}**", "**{}:**", "**{}**:",
    "__{}__", "- **{}**", "> **{}**", "{}\n======", "{}\n---", "{}:", "{}", "<h2>{}</h2>",
    "=== {} ===", "**{}:** some words.",
]  # fmt: skip
DRAFTS = [
    "Thinking", "Reasoning", "Draft", "Scratchpad", "My thoughts", "Thought process", "CHAIN OF THOUGHT", "First draft",
]  # fmt: skip
ANSWERS = [
    "Answer", "Final answer", "Solution", "Final", "Final code", "FINAL SOLUTION", "My submission", "Final output",
    "Final optimized kernel",
]  # fmt: skip


def is_answer(text: str) -> bool:
    found = find_code(text)
    return found is not None and "'answer'" in found.source


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_first", [True, False])
def test_the_answer_wins_over_a_draft_in_every_form_of_heading(form: str, is_first: bool) -> None:
    parts = [
        f"{form.format('Thinking')}\n\n{PROMISE}\n\n{DRAFT}",
        f"{form.format('Answer')}\n\n{ANSWER}\nIt is fused.\n",
    ]
    assert is_answer("\n".join(reversed(parts) if is_first else parts))


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_the_answer_wins_over_a_draft_under_any_of_their_words(draft: str, answer: str) -> None:
    assert is_answer(f"**{answer}**\n\n{ANSWER}\n## {draft}\n\n{PROMISE}\n\n{DRAFT}")
    assert is_answer(f"## {draft}\n\n{PROMISE}\n\n{DRAFT}\n**{answer}**\n\n{ANSWER}")


@pytest.mark.parametrize(
    "text",
    [
        f"# Reasoning\n## Attempt 1\n{PROMISE}\n{DRAFT}\n## Attempt 2\n{DRAFT}\n# Answer\n## Kernel\n{ANSWER}",
        f"## Thinking\n{PROMISE}\n{DRAFT}\n## Answer\n```bash\npip install x\n```\nThen:\n{ANSWER}",
        f"## Thinking\nFinal code:\n{DRAFT}\n## Answer\n{ANSWER.removesuffix('```' + chr(10))}",
        f"## Thinking\nFinal code:\n{DRAFT}\n## Answer\n{ANSWER.replace('ModelNew(torch', 'ModelNew((torch')}",
        f"## Thinking\n{PROMISE}\n{DRAFT}\n## Fused kernel\n{ANSWER}",
        f"Answer:\n{ANSWER}\nDraft:\n{DRAFT}",
        f"````markdown\n## Answer\n{ANSWER}\n## Draft\n{PROMISE}\n{DRAFT}````\n",
    ],
)
def test_a_section_holds_all_its_programs(text: str) -> None:
    assert is_answer(text)


@pytest.mark.parametrize(
    "text",
    [
        f"## Answer\n{DRAFT}\n## Correction\nThe above is wrong. {PROMISE}\n\n{ANSWER}",
        f"## Solution 1 (recommended)\n{ANSWER}\n## Solution 2\n{DRAFT}",
        f"## Thinking\n### Option A\n{ANSWER}\n### Option B\n{DRAFT}\n## Answer\nI submit option A.\n",
        f"## Naive version\n{DRAFT}\n## Reasoning\nIt is slow, so I fuse it:\n\n{ANSWER}",
        f"## Thinking\nOne kernel is enough.\n\n{ANSWER}",
        f"Thinking about shared memory:\n\n{DRAFT}\nOutput: a tensor of shape (N, M)\n\n{ANSWER}",
    ],
)
def test_other_words_of_the_answer_still_decide(text: str) -> None:
    assert is_answer(text)


def test_the_heading_of_a_draft_is_the_reason() -> None:
    found = find_code(f"## Thinking\n{PROMISE}\n{DRAFT}\n**Answer**\n{ANSWER}")
    assert found is not None
    assert found.extraction.reason == 'the text submits it: "Answer"'
    assert found.extraction.alternatives[0].reason == 'the text rejects it: "Thinking"'
