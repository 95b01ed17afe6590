"""What a candidate asks the compiler for, and what came of it. Plain data; keys are made by `harness.builder`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# "uncovered": it uses what the emulator does not cover, so nothing can be said about it
BuildStatus = Literal["built", "cached", "failed", "timeout", "refused", "uncovered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One captured `load_inline` or `load` call, as plain text: a file that the candidate passed by path was read
    by the worker.

    `load_inline` fills `cpp_sources`, `cuda_sources` and `functions` (exported name, docstring); `load` fills
    `files` (file name, text). `headers` are files the candidate wrote below one of its own include paths.
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
    """The outcome of one request. `extension` is the path of the shared object when there is one; `reason` says why the
    lane was not the fast one."""

    key: str
    status: BuildStatus
    extension: str | None
    log: str
    duration_s: float
    lane: str = "plain"
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.extension is not None) != (self.status in ("built", "cached")):
            raise ValueError(f"a build that is {self.status} cannot have extension={self.extension!r}")
