"""Facts about the processor and the build of torch of this machine."""

from __future__ import annotations

import platform
import runpy
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from harness.domain import HarnessError


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or sys.platform


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    version: str
    cuda: str | None


@cache
def read_torch_build() -> TorchBuild:
    """Raises HarnessError."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise HarnessError("torch is not installed: pip install torch")
    facts = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    return TorchBuild(version=str(facts["__version__"]), cuda=facts["cuda"])
