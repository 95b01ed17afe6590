"""Requests the missing samples of a run concurrently and stores each as it arrives.

A failing sample is reported and the others continue; `RunRefused` and `StoreError` end the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from harness.domain import Completion, Finding, Problem, Prompt, ProviderError, RunManifest, SampleKey
from harness.generate.extraction.extractor import extract_candidate
from harness.generate.extraction.notes import explain_incomplete
from harness.generate.providers.base import CompletionRequest, Provider
from harness.generate.providers.retries import EndpointRefused, RunRefused
from harness.store.runs import has_sample, write_sample

DrawOutcome = Literal["stored", "no_code", "failed"]
# Writes wait for fsync, not for the CPU.
_WRITERS = 8
# Requests that start together also finish together, and their responses then queue for the CPU.
_STAGGER_S = 0.006


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`prompts`: one prompt per problem, shared by its samples."""

    run_dir: Path
    manifest: RunManifest
    prompts: tuple[Prompt, ...]
    samples: int
    problems: tuple[Problem, ...] = ()

    def list_keys(self) -> tuple[SampleKey, ...]:
        """All samples in rounds over the problems, so that an early stop covers every problem."""
        return tuple(
            SampleKey(run=self.manifest.run, problem=prompt.problem, sample=number)
            for number in range(self.samples)
            for prompt in self.prompts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFailure:
    key: SampleKey
    message: str
    is_refused: bool = False


@dataclass(slots=True, kw_only=True)
class SessionReport:
    """Counts per sample. `stored` includes `without_code`; `incomplete`: notes on answers without a whole program."""

    run: str
    run_dir: Path
    planned: int
    already_there: int = 0
    stored: int = 0
    without_code: int = 0
    unrecorded: list[SampleKey] = field(default_factory=list)
    incomplete: dict[SampleKey, list[Finding]] = field(default_factory=dict)
    failed: list[SampleFailure] = field(default_factory=list)


def start_report(plan: Plan, provider: Provider) -> tuple[SessionReport, tuple[SampleKey, ...]]:
    keys = plan.list_keys()
    missing = [key for key in keys if not has_sample(plan.run_dir, key)]
    report = SessionReport(
        run=plan.manifest.run, run_dir=plan.run_dir, planned=len(keys), already_there=len(keys) - len(missing)
    )
    report.unrecorded = [key for key in missing if not provider.can_answer(key)]
    skipped = set(report.unrecorded)
    return report, tuple(key for key in missing if key not in skipped)


async def draw_samples(
    plan: Plan,
    provider: Provider,
    report: SessionReport,
    wanted: tuple[SampleKey, ...],
    *,
    concurrency: int,
    read_clock: Callable[[], str],
    notify: Callable[[SampleKey, DrawOutcome], None] = lambda key, outcome: None,
) -> None:
    """Fills `report`; `read_clock` gives the timestamps. Raises RunRefused or StoreError."""
    with ThreadPoolExecutor(max_workers=_WRITERS, thread_name_prefix="store") as writers:
        try:
            async with asyncio.TaskGroup() as group:
                session = _Session(
                    plan=plan,
                    provider=provider,
                    report=report,
                    group=group,
                    concurrency=concurrency,
                    writers=writers,
                    read_clock=read_clock,
                    notify=notify,
                )
                queue = iter(wanted)
                for number in range(min(concurrency, len(wanted))):
                    group.create_task(session.work_through(queue, start_after_s=number * _STAGGER_S))
        except BaseExceptionGroup as errors:
            # The other exceptions are cancellations, or the same failure in a concurrent task.
            raise errors.exceptions[0] from None
    if report.failed and not (report.stored or report.already_there) and all(one.is_refused for one in report.failed):
        raise RunRefused(report.failed[-1].message)


class _Session:
    def __init__(
        self,
        *,
        plan: Plan,
        provider: Provider,
        report: SessionReport,
        group: asyncio.TaskGroup,
        concurrency: int,
        writers: ThreadPoolExecutor,
        read_clock: Callable[[], str],
        notify: Callable[[SampleKey, DrawOutcome], None],
    ) -> None:
        self.plan = plan
        self.provider = provider
        self.report = report
        self.group = group
        self.writers = writers
        self.read_clock = read_clock
        self.notify = notify
        self.prompts = {prompt.problem: prompt for prompt in plan.prompts}
        self.problem_digests = {problem.name: problem.digest for problem in plan.problems}
        self.unwritten = asyncio.Semaphore(2 * concurrency)

    async def work_through(self, queue: Iterator[SampleKey], *, start_after_s: float) -> None:
        await asyncio.sleep(start_after_s)
        for key in queue:
            try:
                completion = await self.provider.complete(self.make_request(key))
            except RunRefused:
                raise
            except ProviderError as error:
                self.report.failed.append(
                    SampleFailure(key=key, message=str(error), is_refused=isinstance(error, EndpointRefused))
                )
                self.notify(key, "failed")
            else:
                self.store(key, completion)
                await self.unwritten.acquire()  # limits unwritten samples in memory when the disk is slow

    def make_request(self, key: SampleKey) -> CompletionRequest:
        manifest = self.plan.manifest
        return CompletionRequest(
            key=key,
            prompt=self.prompts[key.problem],
            model=manifest.model,
            temperature=manifest.temperature,
            max_tokens=manifest.max_tokens,
        )

    def store(self, key: SampleKey, completion: Completion) -> None:
        """Starts the write at once, so that cancellation does not lose a received completion."""
        prompt = self.prompts[key.problem]
        candidate = extract_candidate(completion, prompt.language)
        write = partial(
            write_sample,
            self.plan.run_dir,
            key=key,
            prompt=prompt,
            completion=completion,
            candidate=candidate,
            provenance=describe_provenance(
                self.plan.manifest, self.problem_digests.get(key.problem), self.read_clock()
            ),
        )
        if notes := explain_incomplete(completion, candidate, self.plan.manifest.max_tokens):
            self.report.incomplete[key] = notes
        writing = asyncio.get_running_loop().run_in_executor(self.writers, write)
        self.group.create_task(self.wait_for_write(key, writing, has_code=candidate is not None))

    async def wait_for_write(self, key: SampleKey, writing: asyncio.Future[Path], *, has_code: bool) -> None:
        await asyncio.shield(writing)
        self.unwritten.release()
        self.report.stored += 1
        self.report.without_code += not has_code
        self.notify(key, "stored" if has_code else "no_code")


def describe_provenance(manifest: RunManifest, problem_digest: str | None, created_at: str) -> dict[str, object]:
    return {
        "suite": manifest.suite,
        "problem_digest": problem_digest,
        "model": manifest.model,
        "provider": manifest.provider,
        "base_url": manifest.base_url,
        "temperature": manifest.temperature,
        "max_tokens": manifest.max_tokens,
        "gpu": manifest.gpu,
        "created_at": created_at,
        "harness_version": manifest.harness_version,
    }
