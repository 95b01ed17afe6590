"""Tokens: they join to the text that they came from; comments, strings and directives are told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.syntax.cpp import join, match_backward, match_forward, tokenize

PIECES = (
    "kernel<<<grid, block>>>(x);",
    'R"x(a ")" b)x"',
    '"a \\" b"',
    "'\\''",
    "1'000'000",
    "0x1.8p+3f",
    "// c\\\n d\n",
    "/* <<< */",
    "#define A(x) \\\n  x##y\n",
    "#if A\n{\n#else\n{\n#endif\n",
    "\n",
    "a::b<c>(d)",
    "'",
    '"',
    "/*",
    "\\\n",
    'u8R"(x)"',
    "@$é",
)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
def test_tokens_join_to_the_text(text: str) -> None:
    assert join(tokenize(text)) == text


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_each_token_knows_its_line(text: str) -> None:
    line = 1
    for token in tokenize(text):
        assert token.line == line
        line += token.text.count("\n")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("// a <<< b", "comment"),
        ("/* __shared__\n */", "comment"),
        ('"__global__ \\" <<<"', "string"),
        ('R"y(<<<)" )y"', "string"),
        ("1'000", "number"),
        ("'\"'", "character"),
        ("a // b \\\n c", "word"),
    ],
)
def test_strings_and_comments_are_single_tokens(text: str, kind: str) -> None:
    assert tokenize(text)[0].kind == kind


def test_a_splice_keeps_a_directive_together_and_its_end_closes_it() -> None:
    tokens = tokenize("#define A \\\n b\nc")
    assert {token.text: bool(token.directive) for token in tokens if token.kind == "word"} == {
        "define": True,
        "A": True,
        "b": True,
        "c": False,
    }


def test_brackets_match_past_directives_and_strings() -> None:
    tokens = tokenize('{ f("}"); \n#define A }\n (})[0] }\n}')
    closing = match_forward(tokens, 0)
    assert closing is not None and tokens[closing].line == 3


def test_alternatives_of_a_condition_do_not_follow_each_other() -> None:
    tokens = tokenize("a\n#if 1\n{ b\n#elif 2\n{ c }\n#else\n{ d\n#endif\n}")
    openings = [at for at, token in enumerate(tokens) if token.text == "{"]
    lines = [None if (at := match_forward(tokens, opening)) is None else tokens[at].line for opening in openings]
    assert lines == [9, 5, None]


def test_template_arguments_match_backwards() -> None:
    tokens = tokenize("a<b<c>, (d > e)>")
    assert match_backward(tokens, len(tokens) - 1) == 1


def test_a_quote_is_searched_for_its_end_only_nearby() -> None:
    assert [token.kind for token in tokenize("'a'")] == ["character"]
    assert "character" not in {token.kind for token in tokenize("'" + 33 * "\\n" + "'")}
