"""Evolve: populations on islands, in rotation. A population improves its best programs; sometimes its best one is
combined with the best correct one of the other islands.
"""

from functools import partial

from harness.search.history import History, rank
from harness.search.strategy import Ask, Decision, Strategy

POPULATION = 2  # programs of an island that are gone on from
CROSSED_EVERY = 3  # requests of an island


def choose(history: History, islands: int) -> Decision:
    """Turn n belongs to the island n modulo the number of islands."""
    generation, island = divmod(len(history.turns), islands)
    members = rank([turn for turn in history.turns if turn.number % islands == island])
    if not members:
        return Ask(parent=None)
    others = rank([turn for turn in history.turns if turn.number % islands != island and turn.result.is_correct])
    if generation % CROSSED_EVERY == 0 and others:
        return Ask(parent=members[0].number, partner=others[0].number)
    return Ask(parent=members[generation % min(len(members), POPULATION)].number)


def make_evolve(width: int = 2) -> Strategy:
    return Strategy(name="evolve", choose=partial(choose, islands=width), needs_timing=True, patience=10)
