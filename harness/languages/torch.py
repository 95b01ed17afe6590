"""Plain PyTorch, eager or through `torch.compile`: no custom kernel is written."""

from __future__ import annotations

from harness.domain import BuildRequest
from harness.languages.rules import LanguageRules


def _refuses(request: BuildRequest) -> str | None:
    return (
        f"the candidate builds the extension {request.name!r}, and is to be written in plain PyTorch; "
        "evaluate programs with extensions with --language cuda or cpp"
    )


TORCH = LanguageRules(
    name="torch",
    devices=("cuda", "cpu"),
    detects=lambda source: False,  # must be asked for: a program without a kernel may be a failed one of any language
    refuses=_refuses,
    writes_kernels=False,
)
