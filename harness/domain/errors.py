"""The one tree of exceptions. A failing candidate is data (an `Outcome`); an exception means that the harness,
its settings or its machine failed. Every message says what was expected, what was found, where, and what to do."""


class HarnessError(Exception):
    """Anything the harness itself could not do."""


class UsageError(HarnessError):
    """The user asked for something that does not exist or does not fit together."""


class ProblemError(HarnessError):
    """A problem file cannot be read, does not import, lacks a function, or is not fit to be scored."""


class ProblemTooLarge(ProblemError):
    """A problem needs more memory than there is."""


class ReferenceTimeout(ProblemError):
    """Code of a problem file ran longer than it may."""


class ProviderError(HarnessError):
    """A model's endpoint gave no usable answer, after all retries."""


class StoreError(HarnessError):
    """`generated/` or `results/` cannot be read or written."""


class WireError(HarnessError):
    """A message between two processes broke the protocol."""


class WorkerLost(HarnessError):
    """A worker ended, or closed its end of the line, before it answered."""


class WorkerTimeout(HarnessError):
    """A worker did not answer within its time limit."""


class DeviceError(HarnessError):
    """The device asked for is not there or cannot be used."""


class BuildToolError(HarnessError):
    """A compiler or build tool is missing or unusable: our machine's fault, not the candidate's."""
