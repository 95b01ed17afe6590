"""`harness tools`: evaluation as tools of a coding agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from harness.cli.grouped_help import GroupedCommand
from harness.cli.panels import Panel, Without, expand_panels
from harness.domain import UsageError
from harness.domain.options import option
from harness.pipeline.options import EvaluateOptions
from harness.shipped import name_install

tools_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPanel(Panel):
    title = "Agent"

    run: str = option("agent", "Run of the stored submissions; one server at a time.", metavar="NAME")
    model: str = option("agent", "Name of the agent in the leaderboard.", metavar="NAME")
    budget_evaluations: int | None = option(None, "Evaluations at most.", min=1, metavar="N")


@tools_app.callback()
def _tools() -> None:
    """Evaluation as tools of a coding agent."""


@tools_app.command(cls=GroupedCommand)
@expand_panels
def serve(
    *,
    agent: AgentPanel,
    options: Annotated[
        EvaluateOptions,
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
    """Serve the Model Context Protocol (MCP) on standard input and output.

    Tools: list_problems, get_problem, evaluate, sanitize, profile, submit. Results of submit are stored in
    --results-dir, as turns of one sample per problem. Needs the extra mcp.

    Example: harness tools serve --device cuda --run my-agent --budget-evaluations 50
    """
    try:
        from harness.service.tools.server import serve as run_server
    except ImportError as error:
        raise UsageError(f"the tools need {error.name}: {name_install('mcp')}") from error
    from harness.service.tools.session import ToolSettings

    run_server(ToolSettings(options=options, run=agent.run, model=agent.model, budget=agent.budget_evaluations))
