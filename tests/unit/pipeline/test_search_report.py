"""The line per sample at the end of a search."""

import pytest

from harness.domain import SampleKey
from harness.pipeline.chains import SampleSearch, describe_turns
from harness.search.history import History, Turn


@pytest.mark.parametrize(
    ("speedup", "verdict", "text"),
    [
        (1.73, "tie", "add/0: correct 1.00x (a tie, measured 1.73x) (done)"),
        (1.73, "faster", "add/0: correct 1.73x (done)"),
        (1.73, "unconfirmed", "add/0: correct, unconfirmed time (done)"),
        (None, "", "add/0: correct (done)"),
    ],
)
def test_a_speedup_is_the_one_that_is_ranked(evaluation_of, speedup, verdict, text):
    turn = Turn(number=0, evaluation=evaluation_of("correct", speedup, verdict=verdict))
    search = SampleSearch(
        key=SampleKey(run="r", problem="add", sample=0), history=History(turns=(turn,)), stopped="done"
    )
    assert describe_turns(search) == text
