"""Records versions, device, driver and clocks. They do not affect the verdict."""

from __future__ import annotations

import platform
from functools import cache

import harness
from harness.builder import Toolchain
from harness.evaluation.correctness.reference import usable_threads
from harness.hardware.cpu import cpu_name
from harness.hardware.torch_build import read_torch_build
from harness.languages import LANGUAGES
from harness.sandbox.devices import Device


def describe_environment(toolchain: Toolchain, device: Device | None) -> tuple[tuple[str, str], ...]:
    torch = read_torch_build()
    facts = {
        "harness": harness.__version__,
        "python": platform.python_version(),
        "torch": torch.version,
        "torch_cuda": torch.cuda,
        **_find_versions(),
        "compiler": toolchain.compiler_version,
        "nvcc": toolchain.nvcc_version,
        "architecture": toolchain.architecture,
        "os": f"{platform.system()} {platform.release()}",
        "cpu": cpu_name(),
        "threads": str(usable_threads()),
    }
    if device is not None:
        facts |= device.describe()
    return tuple((name, value) for name, value in facts.items() if value is not None)


@cache
def _find_versions() -> dict[str, str | None]:
    """Return versions of the languages' installed compilers."""
    return {rules.name: rules.version for rules in LANGUAGES.values() if rules.package}
