"""When a search reads hardware counters."""

import pytest

from harness.pipeline.improve import _profile_in
from harness.pipeline.options import EvaluateOptions
from harness.search.strategy import STRATEGIES


@pytest.mark.parametrize(
    ("strategy", "asked", "reads"),
    [
        ("optimise", None, True),
        ("beam", None, True),
        ("repair", None, False),
        ("optimise", False, False),
        ("repair", True, True),
    ],
)
def test_searches_that_optimise_read_counters_unless_the_user_chose(strategy, asked, reads):
    options = _profile_in(STRATEGIES[strategy], EvaluateOptions(profile=asked))
    assert options.profile is reads
