"""Best of n: independent answers without feedback, as a comparison for every other strategy with the same budget."""

from harness.search.history import History
from harness.search.strategy import Ask, Decision, Strategy


def choose(history: History) -> Decision:
    return Ask(parent=None)


BEST_OF_N = Strategy(name="best-of-n", choose=choose, patience=None)
