"""`harness serve` and `harness tools`: evaluate for others."""

import os
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import GroupedCommand, Panel, Without, expand_panels
from harness.domain import UsageError
from harness.domain.files import raising
from harness.domain.options import option
from harness.pipeline.options import EvaluateOptions
from harness.sandbox.policy import explain_evaluator_failure
from harness.service.settings import ServiceSettings, ToolSettings
from harness.shipped import name_install

TOKEN_VARIABLE = "HARNESS_SERVICE_TOKEN"


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


def serve(
    *,
    service: ServicePanel,
    settings: ServiceSettings,
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

    obstacle = "" if settings.trusts_references or options.executor != "local" else explain_evaluator_failure()
    if settings.accepts_references and obstacle:
        typer.echo(f"references by text are refused, since there is no sandbox for them: {obstacle}", err=True)
        typer.echo("--trusted-clients accepts them, and lets clients read all files of this service", err=True)
    settings = replace(
        settings,
        tokens=clients,
        accepts_references=settings.accepts_references and not obstacle,
        max_bodies_bytes=max(settings.max_bodies_bytes, settings.max_body_bytes),
    )
    run_server(Service(settings, open_executor(options)), service.host, service.port)


def _read_tokens(path: Path | None) -> dict[str, str]:
    """Return client names by token."""
    shared = os.environ.get(TOKEN_VARIABLE)
    if path is None:
        return {shared: "client"} if shared else {}
    with raising(UsageError, f"read the tokens in {path}", also=(UnicodeDecodeError,)):
        lines = [line.split() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    if not lines or any(len(line) != 2 for line in lines):
        raise UsageError(f"{path}: expected a client's name and its token on each line")
    return {token: name for name, token in lines}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


tools_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@tools_app.callback()
def _tools() -> None:
    """Evaluation as tools of a coding agent."""


@tools_app.command("serve", cls=GroupedCommand)
@expand_panels
def serve_tools(
    *,
    settings: Annotated[
        ToolSettings,
        Without(
            "executor",
            "address",
            "chip",
            "again",
            "fidelity",
            "profile",
            "reference_timeout",
            "known_solutions",
            "arch",
            "jobs",
            "cache_size",
            "generated_dir",
        ),
    ],
) -> None:
    """Serve the Model Context Protocol (MCP) on standard streams.

    Tools: list_problems, get_problem, evaluate, sanitize, profile, submit. Results of submit are stored in
    --results-dir, as turns of one sample per problem. Needs the extra mcp.

    Example: harness tools serve --device cuda --run my-agent --budget-evaluations 50
    """
    try:
        from harness.service.tools.server import serve as run_tools
    except ImportError as error:
        raise UsageError(f"the tools need {error.name}: {name_install('mcp')}") from error
    run_tools(settings)
