"""What counts as the submitted program of a completion, and which rule finds it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import Completion
from harness.generate.extraction.extractor import Found, extract_candidate, find_code

SEEDS = Path(__file__).parent / "seeds"
HEAD = "import torch\nimport torch.nn as nn\n\n\n"


def _program(answer: int) -> str:
    return f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, x):\n        return x + {answer}\n"


DRAFT, FINAL = _program(1), _program(2)


def _fenced(program: str, fence: str = "```", tag: str = "python") -> str:
    return f"{fence}{tag}\n{program}{fence}\n"


def _find(text: str) -> Found:
    found = find_code(text)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", ["000", "002", "003"])
def test_a_real_completion_gives_its_final_program_byte_for_byte(seed: str) -> None:
    found = _find((SEEDS / f"seed_{seed}.txt").read_bytes().decode())
    assert found.source.encode() == (SEEDS / f"program_{seed}.txt").read_bytes()
    assert found.extraction.rule == "fence"


def test_the_line_span_is_that_of_the_program_in_the_text() -> None:
    text = f"thoughts\n</think>\nHere:\n\n{_fenced(FINAL)}\nDone."
    found = _find(text)
    assert "\n".join(text.split("\n")[found.extraction.first_line - 1 : found.extraction.last_line]) + "\n" == FINAL


def test_a_candidate_carries_its_language_and_rule() -> None:
    candidate = extract_candidate(Completion(text=_fenced(FINAL)), "cpp")
    assert candidate is not None
    assert (candidate.source, candidate.language, candidate.rule) == (FINAL, "cpp", "fence")


@pytest.mark.parametrize("text", [None, "", "   \n", "I cannot do that."])
def test_a_completion_without_code_gives_no_candidate(text: str | None) -> None:
    assert extract_candidate(Completion(text=text), "cuda") is None


def test_a_program_in_the_separate_reasoning_is_never_graded() -> None:
    assert extract_candidate(Completion(text=None, reasoning=_fenced(DRAFT)), "cuda") is None


def test_the_answer_wins_over_a_draft_inside_think_tags() -> None:
    assert _find(f"<think>\n{_fenced(DRAFT)}</think>\n{_fenced(FINAL)}").source == FINAL


def test_the_answer_wins_when_only_the_closing_tag_came_back() -> None:
    assert _find(f"let me try\n{_fenced(DRAFT)}hm</think>\n\n{_fenced(FINAL)}").source == FINAL


def test_a_draft_is_not_graded_when_the_answer_has_no_code() -> None:
    assert find_code(f"<think>{_fenced(DRAFT)}</think>\nI give up.") is None


def test_reasoning_that_never_ends_gives_no_candidate() -> None:
    assert find_code(f"<think>\n{_fenced(DRAFT)}and then") is None


def test_an_answer_before_the_reasoning_counts() -> None:
    assert _find(f"{_fenced(FINAL)}\n<think>\n{_fenced(DRAFT)}</think>\nThat was it.").source == FINAL


def test_unclosed_draft_in_reasoning_does_not_hide_the_answer() -> None:
    assert _find(f"<think>\n```python\nclass Model</think>\n{_fenced(FINAL)}").source == FINAL


def test_fence_directly_before_the_closing_tag_does_not_hide_it() -> None:
    assert _find(f"```python\n{DRAFT}```</think>{_fenced(FINAL)}").source == FINAL


def test_a_quoted_tag_is_not_a_tag() -> None:
    assert _find(f"{_fenced(FINAL)}\nI left out the `</think>` and the '</think>' tag.").source == FINAL


def test_text_without_tags_is_all_answer_and_its_last_program_wins() -> None:
    assert _find(f"First:\n{_fenced(DRAFT)}Wait, better:\n{_fenced(FINAL)}").source == FINAL


def test_a_later_block_without_the_entry_point_does_not_win() -> None:
    usage = "model = ModelNew()\nprint(model(1))\n"
    assert _find(f"{_fenced(FINAL)}Use it so:\n{_fenced(usage)}").source == FINAL


def test_a_later_block_that_only_elides_the_class_does_not_win() -> None:
    elided = "class ModelNew(nn.Module):\n    ...\n"
    assert _find(f"{_fenced(FINAL)}In short:\n{_fenced(elided)}").source == FINAL


def test_later_block_with_a_syntax_error_is_not_preferred() -> None:
    broken = "class ModelNew(:\n"
    assert _find(f"{_fenced(FINAL)}or\n{_fenced(broken)}").source == FINAL


def test_a_lone_block_with_a_syntax_error_is_handed_on() -> None:
    broken = f"{FINAL}def broken(:\n"
    found = _find(f"<think>{_fenced(DRAFT)}</think>\n{_fenced(broken)}")
    assert (found.source, found.extraction.rule) == (broken, "unparsable_fence")


def test_a_truncated_program_is_handed_on_as_it_is() -> None:
    found = _find(f"```python\n{FINAL}    def later(self, a,\n")
    assert (found.source, found.extraction.rule) == (f"{FINAL}    def later(self, a,\n", "unparsable_fence")


@pytest.mark.parametrize("tag", ["", "cuda", "py", "python3", "cpp", "Python title=model.py", "{.python .numberLines}"])
def test_the_tag_of_a_fence_does_not_matter(tag: str) -> None:
    found = _find(_fenced(FINAL, tag=tag))
    assert (found.source, found.extraction.rule) == (FINAL, "fence")
    assert (found.extraction.first_line, found.extraction.last_line) == (2, 1 + FINAL.count("\n"))


def test_a_fence_indented_in_a_list_gives_the_program_without_the_indent() -> None:
    indented = "".join(f"   {line}\n" if line else "\n" for line in _fenced(FINAL).removesuffix("\n").split("\n"))
    found = _find(f"1. Write it:\n\n{indented}\n2. Run it.\n")
    assert (found.source, found.extraction.rule) == (FINAL, "fence")


def test_a_fence_indented_too_far_gives_the_program_without_the_indent() -> None:
    indented = "".join(f"      {line}\n" if line else "\n" for line in _fenced(FINAL).removesuffix("\n").split("\n"))
    found = _find(f"The program:\n\n{indented}")
    assert (found.source, found.extraction.rule) == (FINAL, "loose_fence")


def test_a_fence_in_a_quotation_gives_the_program_without_the_marks() -> None:
    quoted = "".join(f"> {line}\n" for line in _fenced(FINAL).removesuffix("\n").split("\n"))
    assert _find(quoted).source == FINAL


def test_four_backticks_may_hold_three() -> None:
    program = f'NOTE = """\n```\nexample\n```\n"""\n{FINAL}'
    assert _find(_fenced(program, fence="````")).source == program


def test_four_backticks_around_a_whole_markdown_answer_are_looked_into() -> None:
    assert _find(f"````markdown\n# Answer\n{_fenced(FINAL)}````\n").source == FINAL


def test_a_program_whose_docstring_holds_fences_is_found_whole() -> None:
    program = f'"""Use:\n```\nModelNew()\n```\n"""\n{FINAL}'
    found = _find(f"Here:\n{_fenced(program)}Done.\n")
    assert (found.source, found.extraction.rule) == (program, "loose_fence")


def test_tildes_are_a_fence() -> None:
    assert _find(_fenced(FINAL, fence="~~~")).source == FINAL


def test_an_unclosed_last_fence_gives_its_program() -> None:
    found = _find(f"Here:\n```python\n{FINAL}")
    assert (found.source, found.extraction.rule) == (FINAL, "unclosed_fence")


def test_a_complete_block_wins_over_an_unclosed_one_after_it() -> None:
    assert _find(f"{_fenced(FINAL)}again\n```python\n{DRAFT}").source == FINAL


def test_a_stray_fence_before_the_program_does_not_hide_it() -> None:
    found = _find(f"```\nSome words.\n\n{_fenced(FINAL, tag='')}")
    assert (found.source, found.extraction.rule) == (FINAL, "loose_fence")


def test_a_draft_that_was_never_closed_does_not_hide_the_program() -> None:
    assert _find(f"```python\n{DRAFT}\nWait, no.\n\n{_fenced(FINAL)}").source == FINAL


def test_a_stray_fence_between_two_programs_does_not_hide_the_later_one() -> None:
    assert _find(f"{_fenced(DRAFT)}\n```\nBetter:\n\n{_fenced(FINAL, tag='')}").source == FINAL


def test_a_stray_fence_gives_no_candidate() -> None:
    assert find_code("All done.\n```\n") is None


def test_a_stray_fence_after_a_bare_file_is_dropped() -> None:
    found = _find(f"{FINAL}```")
    assert (found.source, found.extraction.rule) == (FINAL, "bare_file")


def test_a_bare_file_without_any_fence_is_a_program() -> None:
    found = _find(f"<think>hm</think>{FINAL}")
    assert (found.source, found.extraction.rule) == (FINAL, "bare_file")


def test_carriage_returns_are_normalised_and_the_program_still_parses() -> None:
    assert _find(f"Here:\n{_fenced(FINAL)}Done.".replace("\n", "\r\n")).source == FINAL


def test_an_include_in_the_prose_does_not_open_an_html_block() -> None:
    assert _find(f"<vector>\n<div>\n{_fenced(FINAL)}").source == FINAL


def test_alias_of_a_class_is_an_entry_point() -> None:
    program = f"{HEAD}class Fused(nn.Module):\n    def forward(self, x):\n        return x\n\n\nModelNew = Fused\n"
    assert _find(_fenced(program)).source == program


def test_rebinding_the_entry_point_to_a_class_from_elsewhere_is_no_program() -> None:
    assert _find(f"{_fenced(FINAL)}Then:\n{_fenced('ModelNew = torch.compile(ModelNew)')}").source == FINAL


def test_a_class_inside_a_condition_is_an_entry_point() -> None:
    program = "try:\n    import torch\nexcept ImportError:\n    class ModelNew:\n        def forward(self): return 1\n"
    assert _find(_fenced(program)).source == program


def test_a_class_inside_a_function_is_no_entry_point() -> None:
    assert find_code(_fenced("def build():\n    class ModelNew:\n        x = f()\n    return ModelNew\n")) is None


def test_text_that_cannot_be_encoded_still_gives_a_candidate_that_can() -> None:
    candidate = extract_candidate(Completion(text=_fenced(f"{FINAL}# \ud800\n")), "cuda")
    assert candidate is not None
    assert candidate.digest


_pieces = st.sampled_from(
    [
        "```",
        "````",
        "~~~",
        "```python\n",
        "\n",
        "\r\n",
        "<think>",
        "</think>",
        "    ",
        "> ",
        "- ",
        "1. ",
        '"""',
        "\0",
        FINAL,
    ]
)


@given(st.lists(st.one_of(_pieces, st.text(max_size=12))).map("".join))
def test_no_text_makes_it_raise(text: str) -> None:
    found = find_code(text)
    lines = text.count("\n") + text.count("\r") + 1
    assert found is None or found.extraction.first_line <= found.extraction.last_line <= lines


_values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`~<"), max_size=40), st.floats()
)
_programs = st.lists(_values, max_size=5).map(
    lambda values: "".join(f"value_{n} = {value!r}\n\n" for n, value in enumerate(values)) + FINAL
)


@given(
    program=_programs,
    fence=st.sampled_from(["```", "````", "`````", "~~~", "~~~~"]),
    tag=st.sampled_from(["", "python", "py", "cuda", " python"]),
    before=st.sampled_from(
        ["", "Here it is:\n", "hm</think>\n\n", f"<think>\n{_fenced(DRAFT)}</think>", _fenced(DRAFT)]
    ),
    after=st.sampled_from(["", "\nDone.", "\n\n- fast\n- correct\n", "\n```\nls\n```"]),
)
def test_any_fence_around_a_program_gives_it_back(program: str, fence: str, tag: str, before: str, after: str) -> None:
    assert _find(f"{before}{_fenced(program, fence, tag)}{after}").source == program
