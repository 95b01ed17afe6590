"""Conditions of `--where`: what they select from a real database, and what they refuse."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import UsageError
from harness.store.columns import compile_condition
from harness.store.results import ResultFilter, ResultStore


@pytest.fixture(scope="module")
def store(tmp_path_factory, evaluation_of):
    with ResultStore.open(tmp_path_factory.mktemp("results")) as opened:
        opened.record(evaluation_of("correct", 2.0, problem="softmax"))
        opened.record(evaluation_of("correct", 0.5, problem="conv", model="gpt-x"))
        opened.record(evaluation_of("timeout", problem="relu", model='it"s'))
        yield opened


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ('outcome == "correct" and speedup > 1.2', [1]),
        ("speedup < 1 or outcome == 'timeout'", [2, 3]),
        ("not speedup > 1", [2, 3]),
        ("speedup != 2", [2]),
        ("speedup is None", [3]),
        ("speedup == None", [3]),
        ("speedup is not None", [1, 2]),
        ("0.1 < speedup <= 0.5", [2]),
        ('problem in ("softmax", "relu")', [1, 3]),
        ('problem not in ["softmax"]', [2, 3]),
        ('like(model, "gpt*")', [2]),
        ("model == 'it\"s'", [3]),
        ("baseline_us / candidate_us >= 2", [1]),
        ("id / 2 == 1.5", [3]),
        ("-speedup > -1", [2]),
        ("speedup_high - speedup_low < 1", [1, 2]),
        ("  id == 1\n", [1]),
    ],
)
def test_a_condition_selects_the_rows_it_describes(store, condition, ids):
    assert [row.id for row in store.rows(ResultFilter(condition=condition))] == ids


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("sped > 1", r"unknown column 'sped'; did you mean speedup\? choose among id, run"),
        ("outcome == correct", 'if it is a text, write "correct"'),
        ("outcome > 3", "compares a string with a number: outcome is a string, 3 is a number"),
        ("speedup in ('a', 1)", "compares a string with a number"),
        ("speedup", "is not a condition"),
        ("speedup >", "cannot be read"),
        ("", "cannot be read"),
        ("speedup > 1; drop", "cannot be read"),
        ("__import__('os').system('x') == 0", "is not supported"),
        ("like(speedup, 'a')", "is not a string"),
        ("model + 'x' == 'y'", "is no number"),
        ("(lambda: 1)() == 1", "is not supported"),
        ("[x for x in model] == 1", "is not supported"),
        ("f'{model}' == 'a'", "is not supported"),
        ("speedup is 1", "only None can"),
        ("speedup > None", "cannot be ordered relative to None"),
        ("speedup == " + "9" * 30, "too large a number"),
        ("not " * 100 + "id == 1", "nested more than 20 levels"),
        ("id == 1 or " * 300 + "id == 2", "at most 2,000"),
    ],
)
def test_invalid_condition_is_refused_with_a_reason(store, condition, reason):
    with pytest.raises(UsageError, match=reason):
        list(store.rows(ResultFilter(condition=condition)))


@given(st.text(max_size=80))
def test_any_text_is_a_condition_or_an_error_of_usage(store, text):
    with suppress(UsageError):
        list(store.rows(ResultFilter(condition=text)))


@given(st.text(max_size=40))
def test_a_text_of_the_condition_never_becomes_sql(text):
    sql, values = compile_condition(f"model == {text!r}")
    assert sql == "(coalesce(e.model = ?, 0))"
    assert values == (text.encode("utf-8", "replace").decode(),)


def test_the_longest_and_deepest_conditions_are_within_what_the_database_bears(store):
    wide = "id == 1" + " or id==1" * 221
    deep = "not " * 17 + "id == 1"
    assert [row.id for row in store.rows(ResultFilter(condition=wide))] == [1]
    assert [row.id for row in store.rows(ResultFilter(condition=deep))] == [2, 3]
