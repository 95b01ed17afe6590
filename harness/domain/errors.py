"""Exception tree: failures of the harness, its settings or its machine. Messages state cause, location and remedy."""


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
