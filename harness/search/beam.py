"""Beam: several first answers, then continue from the least expanded of the best programs."""

from functools import partial

from harness.search.history import History, rank
from harness.search.strategy import Ask, Decision, Strategy


def choose(history: History, width: int) -> Decision:
    if len(history.turns) < width:
        return Ask(parent=None)
    leaders = rank(history.turns)[:width]
    children = [sum(turn.parent == leader.number for turn in history.turns) for leader in leaders]
    return Ask(parent=leaders[children.index(min(children))].number)


def make_beam(width: int = 2) -> Strategy:
    return Strategy(name="beam", choose=partial(choose, width=width), needs_timing=True)
