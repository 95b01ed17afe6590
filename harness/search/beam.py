"""Beam: several first answers, then go on from the least expanded of the best programs."""

from harness.search.history import History, Turn
from harness.search.strategy import Ask, Decision, Strategy

WIDTH = 2


def choose(history: History) -> Decision:
    if len(history.turns) < WIDTH:
        return Ask(parent=None)
    leaders = rank(history)[:WIDTH]
    children = [sum(turn.parent == leader.number for turn in history.turns) for leader in leaders]
    return Ask(parent=leaders[children.index(min(children))].number)


def rank(history: History) -> list[Turn]:
    """Best first; of equals the earlier one. Repeated programs are left out."""
    ranked: list[Turn] = []
    for turn in history.turns:
        if turn.same_as is None:
            place = next((at for at, other in enumerate(ranked) if turn.improves_on(other)), len(ranked))
            ranked.insert(place, turn)
    return ranked


BEAM = Strategy(name="beam", choose=choose, needs_timing=True)
