"""After each verdict a strategy chooses the turn that the next request continues from.

It is a pure function of the history, so an interrupted search resumes.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from harness.analysis.metrics import Price, parse_prices
from harness.domain import Candidate, Message, Prompt, UsageError
from harness.domain.errors import explain_unknown
from harness.domain.options import option
from harness.search.feedback import Feedback, make_feedback, make_fence
from harness.search.history import History, Turn, rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The next request continues from the turn `parent` (None: the problem alone) and combines it with `partner`."""

    parent: int | None
    partner: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    reason: str


Decision = Ask | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """`choose` gets a history of a turn or more. `patience` turns without gain end the search (None: never)."""

    name: str
    choose: Callable[[History], Decision]
    needs_timing: bool = False
    patience: int | None = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The goal of a search: a share of the roofline, or a speedup (the lower end of its interval)."""

    roofline: float = 0.95
    speedup: float | None = None


ROOFLINE = Target()


def parse_target(text: str) -> Target:
    """Raises UsageError."""
    try:
        value = float(text.removesuffix("x"))
    except ValueError:
        value = 0.0
    if text.endswith("x") and value > 0:
        return Target(speedup=value)
    if 0 < value <= 1:
        return Target(roofline=value)
    raise UsageError(f"--target {text}: give a share of the roofline in 0..1, or a speedup with an x, such as 2x")


def decide(strategy: Strategy, history: History, limits: SearchOptions) -> Decision:
    reason = next(_find_limits(strategy, history, limits), None)
    if reason is not None:
        return Stop(reason=reason)
    return strategy.choose(history) if history.turns else Ask(parent=None)


def _find_limits(strategy: Strategy, history: History, limits: SearchOptions) -> Iterator[str]:
    if limits.budget_tokens is not None and history.tokens >= limits.budget_tokens:
        yield f"the budget of {limits.budget_tokens} tokens is spent"
    if limits.budget_usd is not None and history.usd >= limits.budget_usd:
        yield f"the budget of {limits.budget_usd:g} US dollars is spent"
    if not history.turns:
        return
    best, patience = history.best, strategy.patience if limits.patience is None else limits.patience
    if not history.last.outcome.counts_against_model:
        yield f"turn {history.last.number} has no verdict: {history.last.outcome}"
    if best is not None:
        yield from _find_reached(best, limits.target)
    if patience is not None and history.turns_without_gain >= patience:
        yield f"{patience} turns without a gain"
    if len(history.turns) - (limits.start is not None) >= limits.turns:
        yield f"all {limits.turns} turns are used"


def _find_reached(best: Turn, target: Target) -> Iterator[str]:
    if target.speedup is not None and (best.result.speedup_low or 0.0) >= target.speedup:
        yield f"the target of {target.speedup:g}x is reached"
    if (best.peak_fraction or 0.0) >= target.roofline:
        yield f"turn {best.number} is at {best.peak_fraction:.0%} of the roofline"


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
    """Improve populations on islands in rotation; sometimes combine an island's best with the best of the others."""
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
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"no strategy file {path}")
        try:
            found = runpy.run_path(str(path)).get("STRATEGY")
        except Exception as error:
            raise UsageError(f"the strategy file {path} failed: {type(error).__name__}: {error}") from error
        if not isinstance(found, Strategy):
            raise UsageError(f"{path} must define STRATEGY = Strategy(name=..., choose=...), see docs/turns.md")
        return found
    if name not in STRATEGIES:
        raise UsageError(f"{explain_unknown('strategy', name, (AUTO, *STRATEGIES))}, or name a Python file")
    return STRATEGIES[name]


CONTEXT_TOKENS = 32_000
CHARACTERS_PER_TOKEN = 4  # estimate
_NO_PROGRAM = "(The answer held no program.)"

Render = Callable[[Feedback], str]


def make_prompt(
    first: Prompt, history: History, asked: Ask, render: Render, *, context_tokens: int = CONTEXT_TOKENS
) -> Prompt:
    """Continue from the turn `asked.parent`. The oldest turns that do not fit become one line each."""
    if asked.parent is None:
        return first
    path = history.trace(asked.parent)
    partner = None if asked.partner is None else history.find(asked.partner)
    room = context_tokens - count_tokens(first.text) - count_tokens(partner.source or "" if partner else "")
    shown = _choose_shown(path, render, room)
    numbers = {turn.number for turn in shown} | {asked.partner}
    hidden = [turn for turn in history.turns if turn.number not in numbers]
    last = render(make_feedback(shown[-1], history, hidden, partner))
    earlier = [Message(role="user", text=first.text)]
    for turn in shown[:-1]:
        earlier += [_show_program(turn), Message(role="user", text=render(make_feedback(turn)))]
    return replace(first, text=last, earlier=(*earlier, _show_program(shown[-1])))


def count_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _choose_shown(path: Sequence[Turn], render: Render, tokens: int) -> list[Turn]:
    shown: list[Turn] = []
    for turn in reversed(path):
        tokens -= count_tokens(_show_program(turn).text) + count_tokens(render(make_feedback(turn)))
        if shown and tokens < 0:
            break
        shown.append(turn)
    return shown[::-1]


def _show_program(turn: Turn) -> Message:
    if turn.source is None:
        return Message(role="assistant", text=_NO_PROGRAM)
    fence = make_fence(turn.source)
    return Message(role="assistant", text=f"{fence}python\n{turn.source.rstrip()}\n{fence}\n")


Screen = Literal["small", "emulated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    title: ClassVar[str] = "Turns"

    turns: int = option(4, "Answers per sample at most, with feedback.", min=1, metavar="N")
    strategy: str | Strategy = option(
        AUTO,
        "repair, optimise, best-of-n, beam, evolve, or a Python file. auto: optimise if timed, else repair.",
        kind=str,
        metavar="NAME|FILE",
    )
    width: int | None = option(None, "Programs of a beam, or islands of evolve. [default: 2]", min=2, metavar="N")
    patience: int | None = option(
        None, "Stop after N turns without a gain. [default: 5; evolve 10; best-of-n none]", min=1, metavar="N"
    )
    budget_tokens: int | None = option(None, "Tokens per sample, prompts included.", min=0, metavar="N")
    budget_usd: float | None = option(None, "US dollars per sample; needs --price.", min=0.0, metavar="USD")
    target: Target = option(
        ROOFLINE,
        "Stop at this share of the roofline, or at a speedup such as 2x.",
        kind=str,
        text="0.95",
        parse=parse_target,
        metavar="SHARE|Nx",
    )
    screen: Screen | None = option(
        None, "Pre-check cheaply, untimed, at small sizes or emulated; time only correct candidates."
    )
    deadline_s: float | None = option(
        None, "Send no request after this time.", key="deadline", min=0.0, metavar="SECONDS"
    )
    prices: tuple[Price, ...] = option(
        (),
        "US dollars per million prompt and answer tokens. Repeatable.",
        key="price",
        kind=list[str] | None,
        parse=parse_prices,
        metavar="MODEL=IN/OUT",
    )
    context_tokens: int = option(
        CONTEXT_TOKENS, "Limit of a prompt; the oldest turns are summarised in a line each.", min=1, metavar="N"
    )
    start: Candidate | None = None  # the first turn, which is no answer


ONE_TURN = SearchOptions(turns=1)
