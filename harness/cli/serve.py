"""`harness serve`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.panels import Panel, Without
from harness.domain import UsageError
from harness.domain.files import explain_failure
from harness.domain.options import option
from harness.pipeline.options import EvaluateOptions
from harness.shipped import name_install

TOKEN_VARIABLE = "HARNESS_SERVICE_TOKEN"
MOST_BODIES = 128 * 1024  # KiB of requests that are being answered


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePanel(Panel):
    title = "Service"

    host: str = option("127.0.0.1", "Address to listen on.", metavar="ADDRESS")
    port: int = option(8700, "Port.", min=0, max=65535, metavar="NUMBER")
    tokens: Path | None = option(
        None,
        f"File with a client's name and its bearer token per line. [default: ${TOKEN_VARIABLE} for all]",
        metavar="FILE",
    )
    references: bool = option(True, "Accept references by text, which are executed in a sandbox for each client.")
    trusted_clients: bool = option(
        False, "Execute them without it: clients can then read tokens, tasks and files of this machine."
    )
    max_body: int = option(4096, "Limit of a request's body.", min=1, metavar="KIB")
    max_queued: int = option(10_000, "Limit of queued tasks.", min=1, metavar="N")
    max_per_client: int = option(5_000, "Limit of one client's unfinished tasks.", min=1, metavar="N")
    keep_hours: float = option(168.0, "Delete finished tasks after.", min=0.01, metavar="HOURS")
    queue_dir: Path = option(Path("service"), "Folder of the queue and its verdicts.", panel="Paths", metavar="DIR")


def serve(
    *,
    service: ServicePanel,
    options: Annotated[
        EvaluateOptions,
        Without("workload", "dtype", "baseline", "again", "time", "profile", "results_dir", "generated_dir"),
    ],
) -> None:
    """Evaluate candidates on request, over HTTP.

    POST /v1/evaluations gives the whole verdict; /evaluate and its neighbours speak KernelGYM's protocol; /docs shows
    all routes. Accepted tasks survive a restart. Needs the extra serve.

    Example: HARNESS_SERVICE_TOKEN=secret harness serve --device cuda --host 0.0.0.0
    """
    from harness.pipeline.evaluate import open_executor
    from harness.sandbox.policy import explain_evaluator_failure

    clients = _read_tokens(service.tokens)
    if not clients and not _is_loopback(service.host):
        raise UsageError(
            f"{service.host} is reachable from other machines: set {TOKEN_VARIABLE}, or name clients with --tokens"
        )
    try:
        from harness.service.server import serve as run_server
        from harness.service.service import Service
    except ImportError as error:
        raise UsageError(f"the service needs {error.name}: {name_install('serve')}") from error
    from harness.service.settings import ServiceSettings

    obstacle = "" if service.trusted_clients or options.executor != "local" else explain_evaluator_failure()
    if service.references and obstacle:
        typer.echo(f"references by text are refused, since there is no sandbox for them: {obstacle}", err=True)
        typer.echo("--trusted-clients accepts them, and lets clients read all files of this service", err=True)
    settings = ServiceSettings(
        folder=service.queue_dir,
        fidelity=options.fidelity,
        tokens=clients,
        problems_dir=options.problems_dir,
        known_solutions=options.known_solutions,
        accepts_references=service.references and not obstacle,
        trusts_references=service.trusted_clients,
        max_body_bytes=service.max_body * 1024,
        max_bodies_bytes=max(MOST_BODIES, service.max_body) * 1024,
        max_queued=service.max_queued,
        max_per_client=service.max_per_client,
        keep_s=service.keep_hours * 3600,
    )
    run_server(Service(settings, open_executor(options)), service.host, service.port)


def _read_tokens(path: Path | None) -> dict[str, str]:
    """Client name by token."""
    shared = os.environ.get(TOKEN_VARIABLE)
    if path is None:
        return {shared: "client"} if shared else {}
    try:
        lines = [line.split() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the tokens in {path}: {explain_failure(error)}") from error
    if not lines or any(len(line) != 2 for line in lines):
        raise UsageError(f"{path}: expected a client's name and its token on each line")
    return {token: name for name, token in lines}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
