"""Settings of searches by the commands and the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from harness.analysis.metrics import Price, parse_prices
from harness.domain import Candidate
from harness.domain.options import option
from harness.search.strategy import AUTO, CONTEXT_TOKENS, ROOFLINE, Limits, Strategy, Target, parse_target

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
    start: Candidate | None = None

    @property
    def limits(self) -> Limits:
        return Limits(
            turns=self.turns, given=int(self.start is not None), patience=self.patience,
            budget_tokens=self.budget_tokens, budget_usd=self.budget_usd, target=self.target,
        )  # fmt: skip


ONE_TURN = SearchOptions(turns=1)
