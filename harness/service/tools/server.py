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
from dataclasses import asdict, replace
from time import monotonic
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from harness import __version__
from harness.copies import is_reference_copy
from harness.domain import (
    EMULATED,
    CounterReport,
    Evaluation,
    HarnessError,
    Language,
    Problem,
    Subject,
    UsageError,
    WorkloadName,
)
from harness.executors.executor import Executor, Task
from harness.executors.local import LocalExecutor
from harness.generate.prompting import render_feedback
from harness.languages import CPU_LANGUAGE, GPU_LANGUAGE, LANGUAGES, find_devices
from harness.pipeline.data_folders import find_folder
from harness.pipeline.evaluations import Evaluations, open_results
from harness.search.feedback import Feedback, clean, list_told_findings, make_feedback
from harness.search.history import History, Turn
from harness.service.preparation import find_submitted_problem, make_submitted_task
from harness.service.queue import Submission
from harness.service.settings import ToolSettings
from harness.service.tools.problem_facts import PROMPT, describe_problem, list_suite, render_task
from harness.store.completions import has_run
from harness.store.results import ResultFilter, StoredEvaluation
from harness.store.runs import check_name

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
    Language, Field(description="What its kernels are written in; cpp runs on the CPU; torch: plain PyTorch.")
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
        "kernel-harness", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING", lifespan=divert_prints
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


MOST_SOURCE_BYTES = 2**20
PROMPT_NAME = "tools"  # of stored submissions


class ToolSession:
    """Runs one evaluation at a time, so that none disturbs another's timing."""

    def __init__(self, settings: ToolSettings) -> None:
        """Raises UsageError and DeviceError."""
        check_name("run", settings.run)
        if has_run(settings.options.generated_dir, settings.run):
            raise UsageError(f"run {settings.run!r} has a model's answers: choose another --run name for submissions")
        find_devices(settings.options.device, GPU_LANGUAGE)  # only to refuse an unknown or missing one at the start
        self.settings = settings
        self._local = settings.options
        self._executors = {self._local: LocalExecutor(self._local)}
        self._lock = asyncio.Lock()
        self._verdicts = self._started = 0
        self._best: dict[Subject, Turn] = {}

    def close(self) -> None:
        for executor in self._executors.values():
            executor.close()

    def find_problem(self, submission: Submission) -> Problem:
        """Use the server's dtype. Raises UsageError and ProblemError."""
        submission = submission.model_copy(update={"dtype": self.settings.options.dtype})
        return find_submitted_problem(submission, self.settings.options.problems_dir)

    async def evaluate(
        self,
        source: str,
        language: Language,
        about: Submission,
        *,
        sanitizes: bool = False,
        profiles: bool = False,
        stores: bool = False,
    ) -> tuple[str, dict[str, Any]]:
        """Return (feedback, summary). A failing candidate is an outcome. Raises HarnessError, also without budget."""
        _require_source(source)
        options = self.settings.options
        workload = about.workload or (None if sanitizes else options.workload)
        submission = about.model_copy(update={"candidate": source, "language": language, "workload": workload})
        problem = await asyncio.to_thread(self.find_problem, submission)
        async with self._lock:
            if self._left == 0:
                raise UsageError(f"the budget of {self.settings.budget} evaluations is spent")
            executor = await asyncio.to_thread(self._find_executor, language, sanitizes, profiles)
            made = await asyncio.to_thread(make_submitted_task, submission, problem, executor)
            task = made.against(options.baselines)
            self._started += 1
            if stores:
                stored = await self._evaluate_stored(task, executor)
                evaluation, number = stored.evaluation, stored.id
            else:
                evaluation, number = await asyncio.wrap_future(executor.submit(task)), None
            self._verdicts += evaluation.outcome.counts_against_model
            feedback, summary = self._tell(evaluation, task, problem)
            return feedback, summary | {"evaluations_left": self._left, "id": number}

    @property
    def _left(self) -> int | None:
        return None if self.settings.budget is None else self.settings.budget - self._verdicts

    def _find_executor(self, language: Language, sanitizes: bool, profiles: bool) -> Executor:
        local = replace(self._local, device=EMULATED, check_kernels=None) if sanitizes else self._local
        if profiles:
            local = replace(local, fidelity="correctness", profile=True)
            if not any(name.startswith("cuda") for name in find_devices(local.device, language)):
                raise UsageError("profile needs an NVIDIA GPU: this server evaluates on none")
        if not find_devices(local.device, language):
            raise UsageError(f"device {local.device} evaluates no {language} programs")
        if local not in self._executors:
            self._executors[local] = LocalExecutor(local)
        return self._executors[local]

    async def _evaluate_stored(self, task: Task, executor: Executor) -> StoredEvaluation:
        """Submissions for one problem are the turns of one sample."""
        settings, subject = self.settings, task.subject
        where = ResultFilter(run=settings.run, suite=subject.suite, problem=subject.problem)
        with open_results(settings.options) as results:
            turn = results.store.count(where)
            subject = replace(subject, run=settings.run, model=settings.model, prompt=PROMPT_NAME, turn=turn)
            evaluations = Evaluations(replace(settings.options, again=True), executor, results)
            return await evaluations.evaluate(replace(task, subject=subject))

    def _tell(self, evaluation: Evaluation, task: Task, problem: Problem) -> tuple[str, dict[str, Any]]:
        """The summary adds only findings about the candidate's kernels."""
        subject, source = evaluation.subject, task.candidate.source if task.candidate else ""
        place = replace(subject, run="", model="", prompt="", turn=0, candidate_digest="")
        is_copy = is_reference_copy(source, problem.source)
        turn = Turn(number=self._started, evaluation=evaluation, source=source, is_copy=is_copy)
        history = History(turns=(self._best[place], turn) if place in self._best else (turn,))
        if history.best is not None:
            self._best[place] = history.best
        feedback = make_feedback(turn, history)
        told = [
            asdict(replace(one, message=clean(one.message), evidence=clean(one.evidence)))
            for one in list_told_findings(evaluation)
        ]
        summary = {
            "evaluation": turn.number,
            "outcome": feedback.outcome,
            "measured": asdict(feedback.measured) if feedback.measured else None,
            "counters": None if evaluation.counters is None else _describe_counters(feedback, evaluation.counters),
            "findings": told,
            "problem": subject.problem,
            "device": subject.device,
            "workload": subject.workload,
        }
        folder, language = find_folder("prompts", None), subject.language
        told_text = render_feedback(
            feedback, problem, prompt=PROMPT, language=language, prompts_dir=folder, has_tools=True
        )
        return told_text, summary


def _describe_counters(feedback: Feedback, report: CounterReport) -> dict[str, Any]:
    kernels = [asdict(one) | {"metrics": dict(one.metrics)} for one in feedback.counters]
    return {"kernels": kernels, "note": clean(report.note)}


def _require_source(source: str) -> None:
    if not source.strip():
        raise UsageError("the source is empty: send one Python file that defines ModelNew")
    size_bytes = len(source.encode())
    if size_bytes > MOST_SOURCE_BYTES:
        raise UsageError(f"the source has {size_bytes:,} bytes; the limit is {MOST_SOURCE_BYTES:,}")
