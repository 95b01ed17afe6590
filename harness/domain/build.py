"""Build requests of candidates, and their results."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

# "uncovered": it uses a construct that the emulator does not support; no verdict
BuildStatus = Literal["built", "cached", "failed", "timeout", "refused", "uncovered"]
# Counted while it goes on. LOCKED: waiting for another thread or process that builds the same.
RUNNING, PRECOMPILING, LOCKED = GOING_ON = ("running", "precompiling", "locked")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One `load_inline` or `load` call.

    `load_inline` fills `cpp_sources`, `cuda_sources` and `functions` (name, docstring); `load` fills `files` (name,
    source). The candidate wrote the `headers`.
    """

    name: str
    cpp_sources: tuple[str, ...] = ()
    cuda_sources: tuple[str, ...] = ()
    functions: tuple[tuple[str, str], ...] | None = None
    files: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    extra_cflags: tuple[str, ...] = ()
    extra_cuda_cflags: tuple[str, ...] = ()
    extra_ldflags: tuple[str, ...] = ()
    with_cuda: bool | None = None
    no_implicit_headers: bool = False
    with_pytorch_error_handling: bool = True
    is_python_module: bool = True

    @property
    def needs_cuda(self) -> bool:
        return self.has_cuda_sources if self.with_cuda is None else self.with_cuda

    @property
    def has_cuda_sources(self) -> bool:
        return bool(self.cuda_sources) or any(name.endswith((".cu", ".cuh")) for name, _ in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """`extension` is the path of the library; `reason`: why not the fast strategy; `other_target`: targets that the
    device cannot run. `duration_s` excludes the wait for shared parts, `waited_s`.
    """

    key: str
    status: BuildStatus
    extension: str | None
    log: str
    duration_s: float
    strategy: str = "plain"
    reason: str = ""
    other_target: str = ""
    waited_s: float = 0.0

    def __post_init__(self) -> None:
        if (self.extension is not None) != (self.status in ("built", "cached")):
            raise ValueError(f"a build that is {self.status} cannot have extension={self.extension!r}")


AnswerBuild = Callable[[BuildRequest], BuildResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltAhead:
    """`compiled`: files of compilers in the worker, base64 by path, untrusted. `hung`: it timed out while loading.
    `packed`: archives of another node's builds.
    """

    builds: dict[str, BuildResult] = field(default_factory=dict)
    compiled: dict[str, str] = field(default_factory=dict)
    hung: bool = False
    packed: dict[str, bytes] = field(default_factory=dict)


NOTHING_AHEAD = BuiltAhead()
