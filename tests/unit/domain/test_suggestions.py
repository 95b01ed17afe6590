"""Words for unknown names."""

import pytest

from harness.domain.errors import explain_unknown, suggest


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("softmx", ("softmax", "relu"), "did you mean softmax?"),
        ("zzz", ("softmax", "relu"), "known: softmax, relu"),
        ("zzz", map(str, range(12)), "known: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..."),
        ("zzz", (), "known: none"),
    ],
)
def test_similar_name_is_suggested_else_names_are_listed(name, known, words):
    assert suggest(name, known) == words


def test_unknown_name_is_explained_with_all_known_ones():
    assert explain_unknown("column", "speedp", ["id", "speedup"]) == (
        "unknown column 'speedp'; did you mean speedup? choose among id, speedup"
    )
    assert explain_unknown("column", "q", ["id"]) == "unknown column 'q'; choose among id"
