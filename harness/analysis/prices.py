from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.domain import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens, for models matching a pattern with `*` and `?`."""

    model: str
    prompt_usd: float
    completion_usd: float

    def compute_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (self.prompt_usd * prompt_tokens + self.completion_usd * completion_tokens) / 1e6


def find_price(prices: Iterable[Price], model: str) -> Price | None:
    return next((price for price in prices if fnmatchcase(model, price.model)), None)


def parse_prices(texts: list[str] | None) -> tuple[Price, ...]:
    """Raises UsageError."""
    return tuple(map(_parse_price, texts or ()))


def _parse_price(text: str) -> Price:
    model, _, amounts = text.rpartition("=")
    try:
        prompt_usd, completion_usd = map(float, amounts.split("/"))
        if not (model and 0 <= prompt_usd < float("inf") and 0 <= completion_usd < float("inf")):
            raise ValueError(text)
    except ValueError as error:
        raise UsageError(f"--price {text!r}: expected MODEL=IN/OUT in dollars, like 'gpt-5*=1.25/10'") from error
    return Price(model=model, prompt_usd=prompt_usd, completion_usd=completion_usd)
