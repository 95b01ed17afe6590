"""The MCP server over stdio.

Standard output carries the protocol only: the SDK diverts the descriptor, and `divert_prints` the text that Python
would buffer until the descriptor is restored.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from time import monotonic
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from harness import __version__
from harness.domain import HarnessError, Language, WorkloadName
from harness.languages import CPU_LANGUAGE, GPU_LANGUAGE, LANGUAGES
from harness.languages.devices import find_devices
from harness.service.settings import ToolSettings
from harness.service.submission import Submission
from harness.service.tools.problem_facts import describe_problem, list_suite, render_task
from harness.service.tools.session import ToolSession

INSTRUCTIONS = """Optimise kernels against an evaluator that verifies and times them.
Start with get_problem: its task states what a program must keep, with an example. Then repeat: write a program, call
evaluate, act on its feedback. sanitize finds races, out-of-bounds accesses and barrier misuse in GPU kernels without a
GPU; profile reads the hardware counters of a correct program. Call submit with the final program. Evaluations take
seconds to minutes and run one after the other; feedback calls evaluation n turn n. Inputs are fresh and secret on every
call; a speedup counts only beyond its interval."""

PROGRESS_EVERY_S = 10.0
Suite = Annotated[str, Field(description="Suite of problems.")]
ProblemName = Annotated[str, Field(description="A name that list_problems gives.")]
Source = Annotated[str, Field(description="The whole program: one Python file that defines `ModelNew`.")]
ProgramLanguage = Annotated[
    Language,
    Field(description="What its kernels are written in; cpp runs on the CPU; torch: plain PyTorch."),
]
ExampleLanguage = Annotated[Language | None, Field(description="Of the example. Default: one that can be evaluated.")]
Workload = Annotated[
    WorkloadName | None,
    Field(description="Sizes; full is scored. Default: as the server was started, else full; if emulated, smaller."),
]


class Tools:
    """Each public method is a tool; agents read its docstring."""

    def __init__(self, session: ToolSession) -> None:
        self._session = session
        self._options = session.settings.options
        self._running: set[asyncio.Future[Any]] = set()

    def list_problems(self, suite: Suite = "core") -> CallToolResult:
        """List the problems of a suite: name, workloads, summary, tags."""
        with tool_errors():
            problems = list_suite(suite, self._options.problems_dir)
        lines = [f"{one['name']} ({', '.join(one['workloads'])}): {one['summary']}" for one in problems]
        return answer("\n".join(lines), {"suite": suite, "problems": problems})

    def get_problem(
        self, problem: ProblemName, suite: Suite = "core", language: ExampleLanguage = None
    ) -> CallToolResult:
        """Read one problem: the task with its rules and an example, the source of the reference, the workloads with
        sizes and inputs, the devices by language, and the settings with their meanings."""
        with tool_errors():
            devices = {one: find_devices(self._options.device, one) for one in LANGUAGES}
            first = CPU_LANGUAGE if devices[CPU_LANGUAGE] and not devices[GPU_LANGUAGE] else GPU_LANGUAGE
            found = self._session.find_problem(Submission(problem=problem, suite=suite))
            facts = describe_problem(found) | {"devices": devices}
            return answer(f"{render_task(found, language or first)}\n{json.dumps(facts)}", facts)

    async def evaluate(
        self,
        *,
        problem: ProblemName,
        source: Source,
        language: ProgramLanguage,
        context: Context,
        workload: Workload = None,
        suite: Suite = "core",
    ) -> CallToolResult:
        """Build, verify and time a program. Answers with feedback on its main problem or its time, and with a summary:
        outcome, measured speedup with interval and verdict, findings. Stores nothing."""
        about = Submission(problem=problem, suite=suite, workload=workload)
        return await self._evaluate(context, source, language, about)

    async def sanitize(
        self,
        *,
        problem: ProblemName,
        source: Source,
        language: ProgramLanguage,
        context: Context,
        suite: Suite = "core",
    ) -> CallToolResult:
        """Run a cuda or triton program on an emulated GPU, without timing. The findings name races, out-of-bounds
        accesses, barrier misuse and launches beyond the GPU's limits, with line, block and thread."""
        return await self._evaluate(context, source, language, Submission(problem=problem, suite=suite), sanitizes=True)

    async def profile(
        self,
        *,
        problem: ProblemName,
        source: Source,
        language: ProgramLanguage,
        context: Context,
        workload: Workload = None,
        suite: Suite = "core",
    ) -> CallToolResult:
        """Read the hardware counters of the kernels of a correct cuda or triton program with ncu, on an NVIDIA GPU:
        occupancy, throughput of memory and arithmetic, cache hits, stalls. Verified, not timed."""
        about = Submission(problem=problem, suite=suite, workload=workload)
        return await self._evaluate(context, source, language, about, profiles=True)

    async def submit(
        self,
        *,
        problem: ProblemName,
        source: Source,
        language: ProgramLanguage,
        context: Context,
        suite: Suite = "core",
    ) -> CallToolResult:
        """Evaluate a final program and store the result, so that it is ranked. Every submission counts as a turn."""
        return await self._evaluate(context, source, language, Submission(problem=problem, suite=suite), stores=True)

    async def _evaluate(
        self, context: Context, source: str, language: Language, about: Submission, **how: bool
    ) -> CallToolResult:
        """An evaluation continues when its call is cancelled, and the next one waits for its end."""
        task = asyncio.ensure_future(self._session.evaluate(source, language, about, **how))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        with tool_errors():
            await report_progress(context, task)
            feedback, summary = task.result()
        return answer(f"{feedback}\n{json.dumps(summary)}", summary | {"feedback": feedback})


async def report_progress(context: Context, task: asyncio.Future[Any]) -> None:
    """Some clients abort a call that is silent for a minute."""
    began_s = monotonic()
    while not task.done():
        elapsed_s = round(monotonic() - began_s)
        await context.report_progress(elapsed_s, message=f"waiting for the verdict for {elapsed_s} s")
        await asyncio.wait((task,), timeout=PROGRESS_EVERY_S)


def answer(text: str, record: dict[str, Any]) -> CallToolResult:
    """Give text and structure completely: some clients show a model only one of them."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=record)


@contextmanager
def tool_errors() -> Iterator[None]:
    try:
        yield
    except HarnessError as error:
        raise ToolError(str(error)) from error


@asynccontextmanager
async def divert_prints(_: MCPServer[None]) -> AsyncIterator[None]:
    with redirect_stdout(sys.stderr):
        yield


def make_server(session: ToolSession) -> MCPServer[None]:
    server = MCPServer(
        "kernel-harness",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        lifespan=divert_prints,
    )
    tools = Tools(session)
    for tool in (tools.list_problems, tools.get_problem, tools.evaluate, tools.sanitize, tools.profile, tools.submit):
        server.add_tool(tool)
    return server


def serve(settings: ToolSettings) -> None:
    session = ToolSession(settings)
    try:
        asyncio.run(make_server(session).run_stdio_async())
    finally:
        session.close()
