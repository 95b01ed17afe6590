"""What harness must know about a language that kernels are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.domain import BuildRequest, Language


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRules:
    """`devices`: the kinds of device that it runs on; `auto` takes the first that this machine has. `detects` tells
    whether a program is written in it. `refuses` gives the reason why an extension is not allowed in it, or None."""

    name: Language
    devices: tuple[str, ...]
    detects: Callable[[str], bool]
    refuses: Callable[[BuildRequest], str | None]

    @property
    def uses_gpu(self) -> bool:
        """Whether prompts describe a GPU and the sanitizer can check the kernels."""
        return "cuda" in self.devices
