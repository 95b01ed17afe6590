"""Costs of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens for models matching a pattern with `*` and `?`."""

    model: str
    prompt_usd: float
    completion_usd: float

    def compute_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (self.prompt_usd * prompt_tokens + self.completion_usd * completion_tokens) / 1e6


def find_price(prices: Iterable[Price], model: str) -> Price | None:
    return next((price for price in prices if fnmatchcase(model, price.model)), None)
