"""Examines what this machine can evaluate, for `harness doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.builder.cache import find_machine_folder
from harness.domain import EMULATED
from harness.hardware.host import list_gpus
from harness.languages import CPU_LANGUAGE, GPU_LANGUAGE, LANGUAGES, LanguageRules, find_devices
from harness.sandbox.policy import Isolation, probe_isolation
from harness.sandbox.worker_process import WorkerLimits

if TYPE_CHECKING:
    from harness.builder.toolchain import Toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePart:
    part: str
    present: bool
    found: str
    without_it: str


def _make_part(part: str, found: str | None, without_it: str = "") -> MachinePart:
    """`found` None is a missing part."""
    return MachinePart(part=part, present=found is not None, found=found or "none", without_it=without_it)


def examine_machine(
    architecture: str | None, cache_dir: Path | None, *, measure: bool, builds: bool, isolation: str
) -> Iterator[MachinePart | str]:
    """Yield each check when it is known, and before a slow step its name. Start compilers and a sandbox. Store the
    devices' speed (again with `measure`) and, with `builds`, the precompiled header cache.
    """
    from harness.builder.toolchain import probe_toolchain

    yield "looking for compilers and torch"
    toolchain = probe_toolchain(architecture)
    yield from _toolchain_checks(toolchain)
    yield "starting a sandboxed worker"
    sandbox = _worker_check()
    yield sandbox
    if builds:
        yield "building a small extension with each strategy, minutes the first time, then seconds"
        from harness.doctor.trials import try_strategies

        yield from try_strategies(toolchain, cache_dir, isolation)
    tried = [rules for rules in LANGUAGES.values() if rules.trial]
    yield f"evaluating a kernel of {', '.join(rules.title for rules in tried)}"
    with ThreadPoolExecutor() as pool:  # each import takes seconds, in a process of its own
        packages = [
            pool.submit(_package_check, rules) for rules in LANGUAGES.values() if rules.package and not rules.trial
        ]
        yield from map(_trial_check, tried)
        yield from (package.result() for package in packages)
    yield from _gpu_checks()
    yield "measuring the speed of the devices" if measure else "reading or measuring the speed of the devices"
    yield from _speed_checks(cache_dir, measure=measure)
    yield from _certificate_checks(cache_dir, sandbox.found)
    yield _generate_check()


def _toolchain_checks(toolchain: Toolchain) -> list[MachinePart]:
    version, cuda = toolchain.torch_version, toolchain.torch_cuda
    nvcc = toolchain.nvcc_version and f"{toolchain.nvcc_version}, building for {toolchain.architecture}"
    return [
        _make_part("torch", f"{version} ({f'CUDA {cuda}' if cuda else 'CPU'} build)"),
        _make_part("C++ compiler", toolchain.compiler_version, "nothing can be built: install g++, or set CXX"),
        _make_part("ninja", toolchain.ninja_version, "nothing can be built: pip install ninja"),
        _make_part("nvcc", nvcc, "CUDA candidates can only be emulated, without checking that nvcc accepts them"),
        _make_part(
            "torch with CUDA",
            cuda and f"CUDA {cuda}",
            "CUDA candidates can only be emulated: install a CUDA build of torch",
        ),
    ]


def _trial_check(rules: LanguageRules) -> MachinePart:
    """Evaluates a kernel in a sandboxed worker; on the emulated device it is also compiled for the default target."""
    from harness.doctor.trials import try_language

    found, problem = try_language(rules)
    without_it = f"no language {rules.name}: {problem}"
    return MachinePart(part=rules.title, present=not problem, found=found, without_it=without_it)


def _package_check(rules: LanguageRules) -> MachinePart:
    """Check whether the packages are installed without running any."""
    missing = rules.find_missing(EMULATED in find_devices("auto", rules.name))
    without_it = f"no language {rules.name}: {missing}"
    return MachinePart(part=rules.title, present=missing is None, found=rules.version or "none", without_it=without_it)


def _gpu_checks() -> list[MachinePart]:
    without_it = "CUDA candidates are emulated: checked on the CPU, not timed"
    checks = [_make_part(f"GPU cuda:{index}", gpu.name, without_it) for index, gpu in enumerate(list_gpus())]
    if not checks:
        return [_make_part("GPU", None, without_it)]
    return [*checks, _counter_check()]


def _counter_check() -> MachinePart:
    from harness.evaluation.counters import explain_obstacle, find_ncu

    obstacle = explain_obstacle()
    return MachinePart(
        part="ncu", present=not obstacle, found=find_ncu() or "none", without_it=f"no hardware counters: {obstacle}"
    )


def _speed_checks(cache_dir: Path | None, *, measure: bool) -> Iterator[MachinePart]:
    from harness.evaluation.timing.roofline import PeakStore
    from harness.sandbox.devices import open_device

    store = PeakStore(find_machine_folder(cache_dir))
    for name in ("cpu", *(f"cuda:{index}" for index in range(len(list_gpus())))):
        device = open_device(name)
        peaks = store.measure(device) if measure else store.find(device)
        found = f"{peaks.bandwidth_gb_s:,.0f} GB/s, {peaks.tflops:,.3g} TFLOP/s ({peaks.matrix_dtype})"
        yield _make_part(f"speed of {name}", found)


def _worker_check() -> MachinePart:
    sandbox = probe_isolation()
    level = find_isolation(sandbox)
    return MachinePart(
        part="worker sandbox",
        present=sandbox.namespaces and "namespaces" in level,
        found=level,
        without_it=f"only {level}, and candidates see other processes: allow user namespaces. {sandbox.weakness}",
    )


def find_isolation(isolation: Isolation) -> str:
    """Start a worker and return the layers in force."""
    from harness.sandbox.forkserver import Forkserver

    server = Forkserver(isolation)
    try:
        server.spawn(WorkerLimits()).end()
        return server.isolation
    finally:
        server.close()


def _certificate_checks(cache_dir: Path | None, sandbox: str) -> list[MachinePart]:
    from harness.evaluation.certificate import check_standing
    from harness.sandbox.devices import find_device

    checks = []
    for device in (find_device("auto", language) for language in (CPU_LANGUAGE, GPU_LANGUAGE)):
        if device is not None and device.is_timed:
            standing = check_standing(find_machine_folder(cache_dir), device, sandbox)
            kept = standing.certificate
            found = None if kept is None else f"{kept.digest}, {kept.attacks} attacks caught on {kept.made_at}"
            checks.append(_make_part(f"certificate {device.torch_device.type}", found, standing.reason))
    return checks


def _generate_check() -> MachinePart:
    found = "a key is set" if os.environ.get("OPENAI_API_KEY") else "no OPENAI_API_KEY set"
    without_it = "generating needs it, evaluating does not: pip install openai"
    return _make_part("openai package", found if find_spec("openai") else None, without_it)
