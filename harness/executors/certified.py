"""Validity of this machine's red-team certificates."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

import harness
from harness.evaluation.environment import describe_gpu
from harness.hardware.cpu import cpu_name
from harness.hardware.torch_build import read_torch_build
from harness.sandbox.devices import Device
from harness.shipped import find_shipped
from harness.store.certificate import (
    Basis,
    Certificate,
    hash_corpus,
    hash_trusted_code,
    read_certificate,
)

RED_TEAM = "run harness red-team"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`reason`: why there is no valid `certificate`."""

    certificate: Certificate | None
    reason: str = ""


def find_corpus() -> Path | None:
    """The shipped corpus; None if not installed."""
    folder = find_shipped("redteam")
    return folder if (folder / "attacks").is_dir() else None


def check_standing(machine_folder: Path, device: Device, confinement: str | None = None) -> Standing:
    """`confinement` None is not compared: the isolation is unknown before a worker starts."""
    if device.is_emulated:
        return Standing(certificate=None, reason="the emulated device earns none")
    kind, corpus = device.torch_device.type, find_corpus()
    kept = read_certificate(machine_folder, kind)
    if kept is None:
        return Standing(certificate=None, reason=f"not earned yet: {RED_TEAM}")
    if corpus is None:
        return Standing(certificate=None, reason="the red-team corpus is not installed")
    now = describe_basis(device, corpus, kept.basis.confinement if confinement is None else confinement)
    difference = kept.explain_difference(now)
    if difference is not None:
        return Standing(certificate=None, reason=f"{difference}: {RED_TEAM}")
    return Standing(certificate=kept)


def describe_basis(device: Device, corpus: Path, confinement: str) -> Basis:
    """The state that a certificate is valid for."""
    gpu = describe_gpu(device) if device.is_cuda else {}
    hardware = f"{gpu.get('gpu')}, driver {gpu.get('driver')}, {cpu_name()}" if device.is_cuda else cpu_name()
    return Basis(
        device=device.torch_device.type,
        harness=harness.__version__,
        package=hash_trusted_code(Path(harness.__file__).resolve().parent),
        corpus=hash_corpus(corpus),
        hardware=hardware,
        torch=read_torch_build().version,
        python=platform.python_version(),
        confinement=confinement,
    )
