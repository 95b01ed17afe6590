"""`harness tools`: evaluation as tools of a coding agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.grouped_help import GroupedCommand
from harness.cli.options import (
    AllowLoadOption,
    BaselineOption,
    BuildTimeoutOption,
    CacheDirOption,
    CallTimeoutOption,
    CheckOption,
    ConfinementOption,
    DeviceOption,
    DtypeOption,
    EmulatedGpuOption,
    LoadTimeoutOption,
    ProblemsDirOption,
    ResultsDirOption,
    TimeOption,
    WorkloadOption,
    choose_fidelity,
    in_group,
)
from harness.domain import UsageError

AGENT = "Agent"

tools_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@tools_app.callback()
def _tools() -> None:
    """Evaluation as tools of a coding agent."""


@tools_app.command(cls=GroupedCommand)
def serve(
    *,
    run: Annotated[
        str, in_group(AGENT, env="RUN", help="Run of the stored submissions; one server at a time.", metavar="NAME")
    ] = "agent",
    model: Annotated[
        str, in_group(AGENT, env="MODEL", help="Name of the agent in the leaderboard.", metavar="NAME")
    ] = "agent",
    budget_evaluations: Annotated[
        int | None, in_group(AGENT, env="BUDGET_EVALUATIONS", min=1, help="Evaluations at most.", metavar="N")
    ] = None,
    device: DeviceOption = "auto",
    gpu: EmulatedGpuOption = None,
    check: CheckOption = None,
    workload: WorkloadOption = None,
    dtype: DtypeOption = None,
    baseline: BaselineOption = "eager",
    time: TimeOption = True,
    allow_load: AllowLoadOption = False,
    call_timeout: CallTimeoutOption = 60.0,
    load_timeout: LoadTimeoutOption = 120.0,
    build_timeout: BuildTimeoutOption = 600.0,
    confinement: ConfinementOption = "auto",
    results_dir: ResultsDirOption = Path("results"),
    problems_dir: ProblemsDirOption = None,
    cache_dir: CacheDirOption = None,
) -> None:
    """Serve the Model Context Protocol (MCP) on standard input and output.

    Tools: list_problems, get_problem, evaluate, sanitize, profile, submit. Results of submit are stored in
    --results-dir, as turns of one sample per problem. Needs kernel-harness[mcp].

    Example: harness tools serve --device cuda --run my-agent --budget-evaluations 50
    """
    from harness.pipeline.evaluate import EvaluateOptions

    options = EvaluateOptions(
        device=device,
        gpu=gpu,
        check_kernels=check,
        workload=workload,
        dtype=dtype,
        baseline=baseline,
        fidelity=choose_fidelity("full", time),
        allow_load=allow_load,
        call_timeout_s=call_timeout,
        load_timeout_s=load_timeout,
        build_timeout_s=build_timeout,
        confinement=confinement,
        results_dir=results_dir,
        problems_dir=problems_dir,
        cache_dir=cache_dir,
    )
    try:
        from harness.service.tools.server import serve as run_server
    except ImportError as error:
        raise UsageError(f"the tools need {error.name}: pip install 'kernel-harness[mcp]'") from error
    from harness.service.tools.session import ToolSettings

    run_server(ToolSettings(options=options, run=run, model=model, budget=budget_evaluations))
