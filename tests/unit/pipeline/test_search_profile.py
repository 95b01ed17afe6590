"""When a search reads hardware counters."""

import pytest

from harness.pipeline.evaluate import EvaluateOptions, make_local_settings
from harness.pipeline.improve import _profile_in
from harness.search.strategies import STRATEGIES


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
    assert make_local_settings(options).judge.read_counters is reads
    assert make_local_settings(EvaluateOptions(profile=asked)).judge.read_counters is bool(asked)
