"""What a candidate asks the compiler for, and what came of it. Plain data; keys are made by `harness.build`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BuildStatus = Literal["built", "cached", "failed", "timeout", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One captured `load_inline` or `load` call, after torch's own argument rules were applied.

    `functions` maps the exported name to its docstring. Sources are texts: a file that the candidate wrote itself
    and passed to `load` has been read by the worker.
    """

    name: str
    cpp_sources: tuple[str, ...]
    cuda_sources: tuple[str, ...] = ()
    functions: tuple[tuple[str, str], ...] | None = None
    extra_cflags: tuple[str, ...] = ()
    extra_cuda_cflags: tuple[str, ...] = ()
    extra_ldflags: tuple[str, ...] = ()
    extra_headers: tuple[tuple[str, str], ...] = ()
    with_cuda: bool = False
    no_implicit_headers: bool = False
    is_python_module: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """The outcome of one request. `library` is the path of the shared object when there is one."""

    key: str
    status: BuildStatus
    library: str | None
    log: str
    duration_s: float
    lane: str = "plain"

    def __post_init__(self) -> None:
        if (self.library is not None) != (self.status in ("built", "cached")):
            raise ValueError(f"a build that is {self.status} cannot have library={self.library!r}")
