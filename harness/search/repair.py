"""Repair: continue from the last program until one is correct."""

from harness.search.history import History
from harness.search.strategy import Ask, Decision, Stop, Strategy


def choose(history: History) -> Decision:
    if history.best is not None:
        return Stop(reason=f"turn {history.best.number} is correct")
    return Ask(parent=history.last.number)


REPAIR = Strategy(name="repair", choose=choose)
