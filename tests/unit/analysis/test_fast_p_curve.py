"""fast_p over p, and its intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.intervals import bound_share
from harness.analysis.metrics import Draws, estimate_fast, trace_fast_curve
from harness.domain import Outcome

OUTCOMES = st.sampled_from([Outcome.CORRECT, Outcome.TIMEOUT, Outcome.NOT_RUN])


@st.composite
def draws(draw):
    outcomes = tuple(draw(st.lists(OUTCOMES, max_size=5)))
    count = draw(st.integers(0, outcomes.count(Outcome.CORRECT)))
    speedups = tuple(draw(st.lists(st.floats(0.1, 10), min_size=count, max_size=count)))
    return Draws(problem=str(draw(st.integers())), outcomes=outcomes, speedups=speedups)


@given(st.lists(draws(), max_size=8), st.lists(st.floats(0, 12), max_size=5))
def test_a_curve_has_the_values_of_fast_p_within_their_intervals(problems, thresholds):
    curve = trace_fast_curve(problems, thresholds)
    if not any(one.scored for one in problems):
        assert curve == ()
        return
    for point, threshold in zip(curve, thresholds, strict=True):
        assert point.share == pytest.approx(estimate_fast(problems, threshold))
        assert 0.0 <= point.low <= point.share + 1e-12
        assert point.share - 1e-12 <= point.high <= 1.0


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0.0, 0.2775), (0.5, 0.2366, 0.7634), (1.0, 0.7225, 1.0)])
def test_the_interval_is_wilsons(share, low, high):
    assert bound_share(share, 10) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_an_interval_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one problem"):
        bound_share(0.5, 0)
