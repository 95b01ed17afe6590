"""Optimise: repair the first program, then always go on from the best one, up to the roofline."""

from harness.search.history import History
from harness.search.strategy import Ask, Decision, Stop, Strategy

ROOFLINE_SHARE = 0.95  # no program can gain more than the rest


def choose(history: History) -> Decision:
    best = history.best
    if best is None:
        return Ask(parent=history.last.number)
    if (best.peak_fraction or 0.0) >= ROOFLINE_SHARE:
        return Stop(reason=f"turn {best.number} is at {best.peak_fraction:.0%} of the roofline")
    return Ask(parent=best.number)


OPTIMISE = Strategy(name="optimise", choose=choose, needs_timing=True)
