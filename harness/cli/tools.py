"""`harness tools`: evaluation as tools of a coding agent."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.options import GroupedCommand, Without, expand_panels
from harness.domain import UsageError
from harness.service.settings import ToolSettings
from harness.shipped import name_install

tools_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@tools_app.callback()
def _tools() -> None:
    """Evaluation as tools of a coding agent."""


@tools_app.command(cls=GroupedCommand)
@expand_panels
def serve(
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
        from harness.service.tools.server import serve as run_server
    except ImportError as error:
        raise UsageError(f"the tools need {error.name}: {name_install('mcp')}") from error
    run_server(settings)
