"""C++ for the CPU, in extensions built by `load_inline` or `load`."""

from __future__ import annotations

from harness.domain import BuildRequest
from harness.languages.rules import LanguageRules


def _refuses(request: BuildRequest) -> str | None:
    if not request.has_cuda_sources:
        return None
    return (
        f"the extension {request.name!r} has CUDA sources, and the candidate is to be written in cpp; "
        "evaluate CUDA programs with --language cuda"
    )


CPP = LanguageRules(name="cpp", devices=("cpu",), detects=lambda source: True, refuses=_refuses)
