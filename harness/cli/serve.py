"""`harness serve`."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from harness.cli.options import (
    PATHS,
    AddressOption,
    AllowLoadOption,
    ArchOption,
    BuildTimeoutOption,
    CacheDirOption,
    CacheSizeOption,
    CallTimeoutOption,
    CheckOption,
    ChipOption,
    ConfinementOption,
    DeviceOption,
    EmulatedGpuOption,
    ExecutorOption,
    FidelityOption,
    JobsOption,
    LoadTimeoutOption,
    ProblemsDirOption,
    ReferenceTimeoutOption,
    in_group,
)
from harness.domain import UsageError

SERVICE = "Service"
TOKEN_VARIABLE = "HARNESS_SERVICE_TOKEN"


def serve(
    *,
    host: Annotated[str, in_group(SERVICE, env="HOST", help="Address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, in_group(SERVICE, env="PORT", min=0, max=65535, help="Port.", metavar="NUMBER")] = 8700,
    tokens: Annotated[
        Path | None,
        in_group(
            SERVICE,
            env="TOKENS",
            help=f"File with a client's name and its bearer token per line. [default: ${TOKEN_VARIABLE} for all]",
            metavar="FILE",
        ),
    ] = None,
    references: Annotated[
        bool,
        in_group(
            SERVICE,
            "--references/--no-references",
            env="REFERENCES",
            help="Accept references by text, which are executed as trusted code.",
        ),
    ] = True,
    max_body: Annotated[
        int, in_group(SERVICE, env="MAX_BODY", min=1, help="Limit of a request's body.", metavar="KIB")
    ] = 4096,
    max_queued: Annotated[
        int, in_group(SERVICE, env="MAX_QUEUED", min=1, help="Limit of queued tasks.", metavar="N")
    ] = 10_000,
    max_per_client: Annotated[
        int, in_group(SERVICE, env="MAX_PER_CLIENT", min=1, help="Limit of one client's unfinished tasks.", metavar="N")
    ] = 5_000,
    keep_hours: Annotated[
        float, in_group(SERVICE, env="KEEP_HOURS", min=0.01, help="Delete finished tasks after.", metavar="HOURS")
    ] = 168.0,
    device: DeviceOption = "auto",
    executor: ExecutorOption = "local",
    address: AddressOption = "auto",
    chip: ChipOption = None,
    gpu: EmulatedGpuOption = None,
    check: CheckOption = None,
    fidelity: FidelityOption = "full",
    allow_load: AllowLoadOption = False,
    call_timeout: CallTimeoutOption = 60.0,
    load_timeout: LoadTimeoutOption = 120.0,
    reference_timeout: ReferenceTimeoutOption = 600.0,
    build_timeout: BuildTimeoutOption = 600.0,
    arch: ArchOption = None,
    jobs: JobsOption = None,
    confinement: ConfinementOption = "auto",
    queue_dir: Annotated[
        Path, in_group(PATHS, env="QUEUE_DIR", help="Folder of the queue and its verdicts.", metavar="DIR")
    ] = Path("service"),
    problems_dir: ProblemsDirOption = None,
    cache_dir: CacheDirOption = None,
    cache_size: CacheSizeOption = None,
) -> None:
    """Evaluate candidates on request, over HTTP.

    POST /v1/evaluations gives the whole verdict; /evaluate and its neighbours speak KernelGYM's protocol; /docs shows
    all routes. Accepted tasks survive a restart. Needs kernel-harness[serve].

    Example: HARNESS_SERVICE_TOKEN=secret harness serve --device cuda --host 0.0.0.0
    """
    from harness.pipeline.evaluate import EvaluateOptions, open_executor

    options = EvaluateOptions(
        device=device,
        executor=executor,
        address=address,
        chip=chip,
        gpu=gpu,
        check_kernels=check,
        fidelity=fidelity,
        allow_load=allow_load,
        call_timeout_s=call_timeout,
        load_timeout_s=load_timeout,
        reference_timeout_s=reference_timeout,
        build_timeout_s=build_timeout,
        architecture=arch,
        jobs=jobs,
        confinement=confinement,
        cache_dir=cache_dir,
        cache_size=cache_size,
    )
    clients = _read_tokens(tokens)
    if not clients and not _is_loopback(host):
        raise UsageError(
            f"{host} is reachable from other machines: set {TOKEN_VARIABLE}, or name clients with --tokens"
        )
    try:
        from harness.service.server import serve as run_server
        from harness.service.service import Service
    except ImportError as error:
        raise UsageError(f"the service needs {error.name}: pip install 'kernel-harness[serve]'") from error
    from harness.service.settings import ServiceSettings

    settings = ServiceSettings(
        folder=queue_dir,
        fidelity=fidelity,
        tokens=clients,
        problems_dir=problems_dir,
        accepts_references=references,
        max_body_bytes=max_body * 1024,
        max_queued=max_queued,
        max_per_client=max_per_client,
        keep_s=keep_hours * 3600,
    )
    run_server(Service(settings, open_executor(options)), host, port)


def _read_tokens(path: Path | None) -> dict[str, str]:
    """Client name by token."""
    shared = os.environ.get(TOKEN_VARIABLE)
    if path is None:
        return {shared: "client"} if shared else {}
    try:
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the tokens in {path}: {error}") from error
    if not lines or any(len(line) != 2 for line in lines):
        raise UsageError(f"{path}: expected a client's name and its token on each line")
    return {token: name for name, token in lines}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
