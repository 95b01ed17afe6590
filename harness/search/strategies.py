"""The strategies, found by name or in a user's file."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path

from harness.domain import UsageError
from harness.domain.errors import explain_unknown
from harness.search.history import History, rank
from harness.search.strategy import Ask, Decision, Stop, Strategy

POPULATION = 2  # programs of an island that are gone on from
CROSSED_EVERY = 3  # requests of an island


def choose_anew(history: History) -> Decision:
    """Ask for independent answers without feedback, as a comparison for every strategy with the same budget."""
    return Ask(parent=None)


def continue_last(history: History) -> Decision:
    if history.best is not None:
        return Stop(reason=f"turn {history.best.number} is correct")
    return Ask(parent=history.last.number)


def continue_best(history: History) -> Decision:
    return Ask(parent=(history.best or history.last).number)


def choose_leader(history: History, width: int) -> Decision:
    """Ask for several first answers, then continue the least expanded of the best programs."""
    if len(history.turns) < width:
        return Ask(parent=None)
    leaders = rank(history.turns)[:width]
    children = [sum(turn.parent == leader.number for turn in history.turns) for leader in leaders]
    return Ask(parent=leaders[children.index(min(children))].number)


def choose_on_island(history: History, islands: int) -> Decision:
    """Improve populations on islands in rotation: turn n belongs to the island n modulo their number. Sometimes combine
    the best program of an island with the best correct one of the others.
    """
    generation, island = divmod(len(history.turns), islands)
    members = rank([turn for turn in history.turns if turn.number % islands == island])
    if not members:
        return Ask(parent=None)
    others = rank([turn for turn in history.turns if turn.number % islands != island and turn.result.is_correct])
    if generation % CROSSED_EVERY == 0 and others:
        return Ask(parent=members[0].number, partner=others[0].number)
    return Ask(parent=members[generation % min(len(members), POPULATION)].number)


def make_beam(width: int = 2) -> Strategy:
    return Strategy(name="beam", choose=partial(choose_leader, width=width), needs_timing=True)


def make_evolve(width: int = 2) -> Strategy:
    return Strategy(name="evolve", choose=partial(choose_on_island, islands=width), needs_timing=True, patience=10)


BEST_OF_N = Strategy(name="best-of-n", choose=choose_anew, patience=None)
REPAIR = Strategy(name="repair", choose=continue_last)
OPTIMISE = Strategy(name="optimise", choose=continue_best, needs_timing=True)
STRATEGIES = {strategy.name: strategy for strategy in (REPAIR, OPTIMISE, BEST_OF_N, make_beam(), make_evolve())}
WITH_WIDTH = {"beam": make_beam, "evolve": make_evolve}
AUTO = "auto"


def find_strategy(wanted: str | Strategy, *, is_timed: bool, width: int | None = None) -> Strategy:
    """`auto` is optimise if time is measured, else repair. The path of a Python file selects its STRATEGY. `width` sets
    the beam's width or the number of islands (None: the strategy's default). Raises UsageError.
    """
    if wanted == AUTO and width is None:
        return OPTIMISE if is_timed else REPAIR
    strategy = _find_named(wanted, width) if isinstance(wanted, str) else wanted
    if strategy.needs_timing and not is_timed:
        raise UsageError(
            f"--strategy {strategy.name} needs timing, and nothing is timed here (emulated device, no device, or "
            "--no-time): use --strategy repair"
        )
    return strategy


def _find_named(name: str, width: int | None) -> Strategy:
    if width is not None:
        if name not in WITH_WIDTH:
            raise UsageError(f"--width is for the strategies {' and '.join(WITH_WIDTH)}")
        return WITH_WIDTH[name](width)
    if name.endswith(".py"):
        return _load_strategy(Path(name))
    if name not in STRATEGIES:
        raise UsageError(f"{explain_unknown('strategy', name, (AUTO, *STRATEGIES))}, or name a Python file")
    return STRATEGIES[name]


def _load_strategy(path: Path) -> Strategy:
    if not path.is_file():
        raise UsageError(f"no strategy file {path}")
    try:
        found = runpy.run_path(str(path)).get("STRATEGY")
    except Exception as error:
        raise UsageError(f"the strategy file {path} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, Strategy):
        raise UsageError(f"{path} must define STRATEGY = Strategy(name=..., choose=...), see docs/turns.md")
    return found
