"""Words errors about unknown names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SIMILAR = 0.6  # of difflib's ratio
NAMES_SHOWN = 10


def suggest(name: object, known: Iterable[str], otherwise: str | None = None, *, most: int = 1) -> str:
    """Return "did you mean NAME?" for known names that are similar, or `otherwise` (by default some known names)."""
    names = list(known)
    near = get_close_matches(str(name), names, n=most, cutoff=SIMILAR)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = ", ..." if len(names) > NAMES_SHOWN else ""
    return f"known: {', '.join(names[:NAMES_SHOWN]) or 'none'}{more}" if otherwise is None else otherwise


def explain_unknown(what: str, name: object, known: Iterable[str]) -> str:
    names = list(known)
    hint = suggest(name, names, "")
    return f"unknown {what} {name!r}; {f'{hint} ' if hint else ''}choose among {', '.join(names) or 'none'}"
