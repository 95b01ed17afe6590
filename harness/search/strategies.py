"""Finds a strategy by name, or in a user's file."""

from __future__ import annotations

import runpy
from difflib import get_close_matches
from pathlib import Path

from harness.domain import UsageError
from harness.search.beam import make_beam
from harness.search.best_of_n import BEST_OF_N
from harness.search.evolve import make_evolve
from harness.search.optimise import OPTIMISE
from harness.search.repair import REPAIR
from harness.search.strategy import Strategy

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
        near = get_close_matches(name, STRATEGIES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"no strategy {name!r}: {hint}Known: {AUTO}, {', '.join(STRATEGIES)}, or the path of a Python file"
        )
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
