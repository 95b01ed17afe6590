"""`harness doctor`: what this machine can evaluate."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import EvaluationPanel, JsonOption, PathsPanel, SandboxPanel
from harness.cli.panels import Only
from harness.domain import EMULATED, Language, UsageError

if TYPE_CHECKING:
    from harness.builder import Toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`without_it`: the effect of its absence."""

    part: str
    present: bool
    found: str
    without_it: str


def doctor(
    *,
    red_team: Annotated[
        bool, typer.Option("--red-team", hidden=True, help="The old name of `harness red-team`.")
    ] = False,
    corpus: Annotated[Path | None, typer.Option(hidden=True)] = None,
    only: Annotated[str | None, typer.Option(hidden=True)] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the devices' speed again, on an idle machine.")
    ] = False,
    builds: Annotated[
        bool,
        typer.Option("--builds/--no-builds", help="Test each build strategy; minutes the first time, then seconds."),
    ] = True,
    evaluation: Annotated[EvaluationPanel, Only("executor", "address")],
    sandbox: Annotated[SandboxPanel, Only("arch", "confinement")],
    paths: Annotated[PathsPanel, Only("cache_dir")],
    json_output: JsonOption = False,
) -> None:
    """Report what this machine can do: compilers, torch, GPUs, sandbox. With --executor ray: the nodes of a cluster.

    Example: harness doctor
    """
    if red_team:
        from harness.cli.red_team import red_team as run_red_team

        run_red_team(corpus=corpus, only=only, sandbox=sandbox, paths=paths, json_output=json_output)
        return
    if corpus is not None or only is not None:
        raise UsageError("--corpus and --only go with --red-team")
    if evaluation.executor == "ray":
        _report_cluster(evaluation.address, paths.cache_dir, sandbox.confinement, json_output=json_output)
        return
    checks = examine_machine(
        sandbox.arch, paths.cache_dir, measure=measure, builds=builds, confinement=sandbox.confinement
    )
    if json_output:
        import json

        typer.echo(json.dumps({check.part: asdict(check) for check in checks}))
        return
    print_checks(checks)


def examine_machine(
    architecture: str | None,
    cache_dir: Path | None = None,
    *,
    measure: bool = False,
    builds: bool = True,
    confinement: str = "auto",
) -> list[Check]:
    """Starts compilers and a sandbox. Stores the devices' speed (again with `measure`) and, with `builds`, the
    precompiled header cache."""
    from harness.builder import probe_toolchain

    toolchain = probe_toolchain(architecture)
    sandbox = _worker_check()
    return [
        *_toolchain_checks(toolchain),
        *(_lane_checks(toolchain, cache_dir, confinement) if builds else ()),
        _triton_check(),
        _package_check("helion", "helion", "Helion"),
        _package_check("tilelang", "tilelang", "TileLang"),
        _package_check("cute", "nvidia-cutlass-dsl", "CuTe DSL"),
        *_gpu_checks(),
        *_speed_checks(cache_dir, measure=measure),
        _confinement_check(),
        sandbox,
        *_certificate_checks(cache_dir, sandbox.found),
        _generate_check(),
    ]


def _toolchain_checks(toolchain: Toolchain) -> list[Check]:
    cuda = f"CUDA {toolchain.torch_cuda} build" if toolchain.torch_cuda else "CPU build"
    return [
        Check(part="torch", present=True, found=f"{toolchain.torch_version} ({cuda})", without_it=""),
        Check(
            part="C++ compiler",
            present=toolchain.compiler_version is not None,
            found=toolchain.compiler_version or "none",
            without_it="nothing can be built: install g++, or set CXX",
        ),
        Check(
            part="ninja",
            present=toolchain.ninja_version is not None,
            found=toolchain.ninja_version or "none",
            without_it="nothing can be built: pip install ninja",
        ),
        Check(
            part="nvcc",
            present=toolchain.nvcc_version is not None,
            found=f"{toolchain.nvcc_version}, building for {toolchain.architecture}",
            without_it="CUDA candidates can only be emulated, without checking that nvcc accepts them",
        ),
        Check(
            part="torch with CUDA",
            present=toolchain.torch_cuda is not None,
            found=f"CUDA {toolchain.torch_cuda}",
            without_it="CUDA candidates can only be emulated: install a CUDA build of torch",
        ),
    ]


def _lane_checks(toolchain: Toolchain, cache_dir: Path | None, confinement: str) -> list[Check]:
    from harness.executors.lanes import try_lanes

    return [
        Check(part=f"build {trial.name}", present=trial.works, found=trial.found, without_it=trial.found)
        for trial in try_lanes(toolchain, cache_dir, confinement)
    ]


def _triton_check() -> Check:
    """In a sandboxed worker: a kernel is interpreted, and compiled for the default target."""
    from harness.executors.triton_trial import try_triton

    found, problem = try_triton()
    return Check(part="Triton", present=not problem, found=found, without_it=f"no language triton: {problem}")


def _package_check(language: Language, package: str, part: str) -> Check:
    """Whether the packages of the language are installed: nothing is run."""
    from importlib.metadata import PackageNotFoundError, version

    from harness.languages import LANGUAGES
    from harness.languages.devices import find_devices

    missing = LANGUAGES[language].find_missing(EMULATED in find_devices("auto", language))
    try:
        found = version(package)
    except PackageNotFoundError:
        found = "none"
    return Check(part=part, present=missing is None, found=found, without_it=f"no language {language}: {missing}")


def _gpu_checks() -> list[Check]:
    from harness.hardware.cuda_driver import list_gpus

    without_it = "CUDA candidates are emulated: checked on the CPU, not timed"
    checks = [
        Check(part=f"GPU cuda:{index}", present=True, found=gpu.name, without_it=without_it)
        for index, gpu in enumerate(list_gpus())
    ]
    if not checks:
        return [Check(part="GPU", present=False, found="none", without_it=without_it)]
    return [*checks, _counter_check()]


def _counter_check() -> Check:
    from harness.evaluation.counters.ncu import explain_obstacle, find_ncu

    obstacle = explain_obstacle()
    return Check(
        part="ncu", present=not obstacle, found=find_ncu() or "none", without_it=f"no hardware counters: {obstacle}"
    )


def _speed_checks(cache_dir: Path | None, *, measure: bool) -> list[Check]:
    """Upper bounds for every candidate."""
    from harness.builder import find_machine_folder
    from harness.evaluation.timing.device_peaks import CeilingStore
    from harness.hardware.cuda_driver import list_gpus
    from harness.sandbox.devices import Device

    store = CeilingStore(find_machine_folder(cache_dir))
    checks = []
    for name in ("cpu", *(f"cuda:{index}" for index in range(len(list_gpus())))):
        device = Device(name)
        ceilings = store.measure(device) if measure else store.find(device)
        found = f"{ceilings.bandwidth_gb_s:,.0f} GB/s, {ceilings.tflops:,.3g} TFLOP/s ({ceilings.matrix_dtype})"
        checks.append(Check(part=f"speed of {name}", present=True, found=found, without_it=""))
    return checks


def _confinement_check() -> Check:
    from harness.sandbox.policy import probe_confinement

    path = probe_confinement().bubblewrap
    return Check(
        part="bubblewrap",
        present=path is not None,
        found=path or "none",
        without_it="a private root replaces it where user namespaces are allowed: see worker sandbox",
    )


def _worker_check() -> Check:
    from harness.sandbox.forkserver import Forkserver
    from harness.sandbox.policy import probe_confinement
    from harness.sandbox.worker_process import WorkerLimits

    sandbox = probe_confinement()
    server = Forkserver(sandbox)
    try:
        server.spawn(WorkerLimits()).end()
        level = server.isolation
    finally:
        server.close()
    return Check(
        part="worker sandbox",
        present=sandbox.has_own_root and "namespaces" in level,
        found=level,
        without_it=f"only {level}, and candidates see other processes: allow user namespaces. {sandbox.weakness}",
    )


def _certificate_checks(cache_dir: Path | None, sandbox: str) -> list[Check]:
    """One per kind of device."""
    from harness.builder import find_machine_folder
    from harness.executors.certified import check_standing
    from harness.sandbox.devices import open_device

    checks = []
    for device in (open_device("auto", "cpp"), open_device("auto", "cuda")):
        if device is not None and not device.is_emulated:
            standing = check_standing(find_machine_folder(cache_dir), device, sandbox)
            kept = standing.certificate
            found = "" if kept is None else f"{kept.digest}, {kept.attacks} attacks caught on {kept.made_at}"
            name = f"certificate {device.torch_device.type}"
            checks.append(Check(part=name, present=kept is not None, found=found, without_it=standing.reason))
    return checks


def _generate_check() -> Check:
    from importlib.util import find_spec

    installed = find_spec("openai") is not None
    key = "a key is set" if os.environ.get("OPENAI_API_KEY") else "no OPENAI_API_KEY set"
    return Check(
        part="openai package",
        present=installed,
        found=key if installed else "none",
        without_it="generating needs it, evaluating does not: pip install openai",
    )


def summarise(checks: list[Check]) -> list[str]:
    present = {check.part for check in checks if check.present}
    gpu = any(part.startswith("GPU cuda") for part in present)
    builds_cuda = {"nvcc", "torch with CUDA"} <= present
    emulated = "verified on the emulated device, not timed" if "C++ compiler" in present else "not built"
    cuda = "verified and timed" if gpu and builds_cuda else emulated
    cpp = "verified and timed on the CPU" if "C++ compiler" in present else "not built"
    timed = "verified and timed" if gpu else "compiled and verified on the emulated device, not timed"
    triton = timed if "Triton" in present else "not evaluated"
    helion = timed if {"Triton", "Helion"} <= present else "not evaluated"
    compiled = "verified and timed" if gpu else "compiled for the emulated GPU, not run"
    cute = compiled if "CuTe DSL" in present else "not evaluated"
    tilelang = compiled if {"TileLang", "nvcc"} <= present else "not evaluated"
    torch = "verified and timed" if gpu else "verified and timed on the CPU"
    compiling = "" if "C++ compiler" in present else "; torch.compile needs a C++ compiler on the CPU"
    return [
        f"language cuda: {cuda}",
        f"language triton: {triton}",
        f"language helion: {helion}",
        f"language cute: {cute}",
        f"language tilelang: {tilelang}",
        f"language torch: {torch}{compiling}",
        f"language cpp:  {cpp}",
    ]


def _report_cluster(address: str, cache_dir: Path | None, confinement: str, *, json_output: bool) -> None:
    from harness.executors.cluster.connection import ClusterSettings
    from harness.executors.cluster.examination import examine_cluster
    from harness.executors.settings import LocalSettings

    reports = examine_cluster(ClusterSettings(address=address), LocalSettings(cache=cache_dir, confinement=confinement))
    if json_output:
        from harness.report.export.json_records import dump_json

        typer.echo(dump_json(*(asdict(report) for report in reports)), nl=False)
        return
    from rich.console import Console

    from harness.report.terminal.tables import make_table, style_text

    table = make_table("Nodes of the cluster")
    for name in ("node", "device", "chip", "isolation layers", "certificate"):
        table.add_column(name, overflow="fold")
    for report in reports:
        for device in report.devices:
            certificate = style_text(device.certificate, "green" if device.is_certified else "yellow")
            table.add_row(report.node, device.name, device.chip, device.isolation, certificate)
        if not report.devices:
            table.add_row(report.node, "none", style_text(report.obstacle, "yellow"), "", "")
    Console().print(table)


def print_checks(checks: list[Check]) -> None:
    from rich.console import Console

    from harness.report.terminal.tables import make_table, style_text

    table = make_table("This machine")
    for name in ("part", "", "found, or effect of its absence"):
        table.add_column(name, overflow="fold")
    for check in checks:
        mark = style_text("yes", "green") if check.present else style_text("no", "yellow")
        table.add_row(check.part, mark, style_text(check.found if check.present else check.without_it))
    Console().print(table)
    for line in summarise(checks):
        typer.echo(line)
