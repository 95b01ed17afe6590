"""Optimise: repair the first program, then always continue from the best one."""

from harness.search.history import History
from harness.search.strategy import Ask, Decision, Strategy


def choose(history: History) -> Decision:
    return Ask(parent=(history.best or history.last).number)


OPTIMISE = Strategy(name="optimise", choose=choose, needs_timing=True)
