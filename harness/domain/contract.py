"""What an argument of a reference's `forward` may be, and what a candidate may therefore rely on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = int | float | str | None  # a str is an expression of the file's sizes
KINDS: dict[str, tuple[str, ...]] = {  # with their options
    "real": ("low", "high", "distinct"),
    "integer": ("low", "high", "also"),
    "index": ("below", "also"),
    "mask": ("structure",),
    "one_hot": ("dim",),
    "permutation": ("dim",),
    "probabilities": ("dim",),
    "sorted": ("dim", "low", "high"),
    "counts": ("dim", "low"),
    "symmetric": (),
    "positive_definite": (),
    "triangular": ("structure",),
    "fixed": (),
    "as_drawn": (),
}
STRUCTURES = {"mask": ("arbitrary", "nonempty", "causal", "lengths"), "triangular": ("lower", "upper")}
_MASKS = {
    "arbitrary": "any boolean mask",
    "nonempty": "any boolean mask with at least one element in each row",
    "causal": "a causal mask",
    "lengths": "a mask of the first elements of each row, as many as any length from 1",
}
_NOUNS = {
    "one_hot": "any one-hot vectors",
    "permutation": "any permutations of 0, 1, 2, ...",
    "probabilities": "any probabilities, with a sum of 1",
    "sorted": "any sorted values",
    "counts": "any counts with the given sum",
    "symmetric": "any symmetric matrices",
    "positive_definite": "any symmetric positive definite matrices",
    "fixed": "the same value in every call",
    "as_drawn": "only what get_inputs makes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputContract:
    """Bounds are inclusive. Values `also` are allowed beside those of the range. `dim` is the dimension along which
    `one_hot`, `sorted` and others hold. `distinct` values differ within a row.

    Of inputs that were seen: `is_constant` if they are equal in two draws, `is_related` if their elements are not drawn
    independently, `has_pattern` if they are floating values that are constant or whole, though others are allowed.
    """

    kind: str = "real"
    argument: str = ""
    low: Bound = None
    high: Bound = None
    structure: str = ""
    dim: int | Literal["all"] = -1
    also: tuple[int, ...] = ()
    distinct: bool = False
    is_stated: bool = False
    is_constant: bool = False
    is_related: bool = False
    has_pattern: bool = False

    def __str__(self) -> str:
        return f"{self.argument} may be {self.describe()}"

    def describe_source(self) -> str:
        return f"{self.describe()} ({'stated' if self.is_stated else 'inferred'})"

    @property
    def is_bounded(self) -> bool:
        return self.low is not None or self.high is not None

    @property
    def states_bounds(self) -> bool:
        """True for real numbers of a stated range, without other conditions."""
        return self.is_stated and self.kind == "real" and self.is_bounded and not self.distinct

    @property
    def is_free(self) -> bool:
        return self.kind == "real" and not self.is_related and not self.distinct

    @property
    def has_free_sizes(self) -> bool:
        """False within inferred bounds, which are not known to be the right ones."""
        return self.is_free and (self.is_stated or not self.is_bounded)

    @property
    def may_be_refilled(self) -> bool:
        """True for the values of distributions that the problem declares."""
        return not self.is_stated or (self.kind == "real" and not self.distinct)

    @property
    def is_never_negative(self) -> bool:
        return not (self.low is None or isinstance(self.low, str) or self.low < 0)

    @property
    def has_free_digits(self) -> bool:
        """True if equal changes of equal values are allowed."""
        return not self.is_stated or self.kind in ("real", "symmetric", "triangular")

    def describe(self) -> str:
        match self.kind:
            case "real":
                words = ("real numbers" if self.is_bounded else "any real numbers") + self._describe_bounds()
                return words + (", different within each row" if self.distinct else "")
            case "integer" | "index":
                noun = "integers" if self.kind == "integer" else "indices"
                also = f", or {', '.join(map(str, self.also))}" if self.also else ""
                is_seen = (
                    not self.is_stated and self.low == self.high and bool(self.high)
                )  # equal ones: perhaps lengths
                bounds = f" up to {self.high}" if is_seen else self._describe_bounds()
                return (noun if self.is_bounded else f"any {noun}") + bounds + also
            case "mask":
                return _MASKS[self.structure or "arbitrary"]
            case "counts" if self.low is not None:
                return f"any counts of at least {self.low} with the given sum{self._describe_dim()}"
            case "triangular":
                return f"any {self.structure or 'lower'} triangular matrices"
        return _NOUNS[self.kind] + self._describe_dim() + self._describe_bounds()

    def _describe_dim(self) -> str:
        return "" if self.dim == -1 else " of all elements" if self.dim == "all" else f" along dimension {self.dim}"

    def _describe_bounds(self) -> str:
        low = "" if self.low is None else f" from {self.low}"
        return low + ("" if self.high is None else f" to {self.high}" if low else f" up to {self.high}")
