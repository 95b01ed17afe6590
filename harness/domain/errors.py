"""Failures of the harness, its settings or its machine. Messages state cause, location and remedy."""

from collections.abc import Iterable
from difflib import get_close_matches


class HarnessError(Exception):
    """Base class."""


class UsageError(HarnessError):
    """The user's request is invalid or contradictory."""


class ProblemError(HarnessError):
    """A problem file is unreadable, incomplete or unfit to be scored."""


class ProblemTooLarge(ProblemError):
    """A problem needs more memory than there is."""


class ReferenceStopped(ProblemError):
    """A problem file's code ended its process, or exceeded its time limit."""


class ProviderError(HarnessError):
    """A model endpoint failed after all retries, or another service refused a request."""


class StoreError(HarnessError):
    """`generated/` or `results/` cannot be read or written."""


class WireError(HarnessError):
    """A message violates the protocol."""


class WorkerLost(HarnessError):
    """A worker exited or closed its connection."""


class WorkerTimeout(HarnessError):
    """A worker did not answer within its time limit."""


class DeviceError(HarnessError):
    """The requested device is missing or unusable."""


class BuildToolError(HarnessError):
    """A compiler or build tool is missing or unusable."""


class NoVerdict(HarnessError):
    """An evaluation service gave no verdict about the candidate."""


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


def shorten(text: str, most: int) -> str:
    """Cut the text after `most` characters, and mark it then by `...`."""
    return text if len(text) <= most else f"{text[:most]}..."


def name_cause(error: Exception) -> str:
    """Return the first line of the message, or the kind of an error without one."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def explain_unknown(what: str, name: object, known: Iterable[str]) -> str:
    names = list(known)
    hint = suggest(name, names, "")
    return f"unknown {what} {name!r}; {f'{hint} ' if hint else ''}choose among {', '.join(names) or 'none'}"
