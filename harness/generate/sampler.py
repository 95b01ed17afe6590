"""Plans requests to a model, sends them concurrently and stores each answer as it arrives."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.domain import Candidate, Completion, Finding, Problem, Prompt, RunManifest, SampleKey
from harness.generate.extraction.extractor import extract_candidate
from harness.generate.extraction.notes import explain_incomplete
from harness.generate.providers import CompletionRequest, Provider
from harness.store.runs import write_sample

# Writes wait for fsync, not for the CPU.
_WRITERS = 8
# Requests that start together also finish together, and their responses then queue for the CPU.
_STAGGER_S = 0.006
# What each sample records of its run's manifest.
_ORIGIN = ("suite", "model", "provider", "base_url", "temperature", "max_tokens", "gpu", "harness_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    run_dir: Path
    manifest: RunManifest
    prompts: tuple[Prompt, ...]
    samples: int
    problems: tuple[Problem, ...] = ()

    def list_keys(self) -> tuple[SampleKey, ...]:
        """Order samples in rounds over the problems, so that an early stop covers every problem."""
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
    """`planned` counts first turns; `stored` includes `without_code`; `incomplete`: notes on partial answers."""

    run: str
    run_dir: Path
    planned: int
    already_there: int = 0
    stored: int = 0
    without_code: int = 0
    unrecorded: list[SampleKey] = field(default_factory=list)
    incomplete: dict[SampleKey, list[Finding]] = field(default_factory=dict)
    failed: list[SampleFailure] = field(default_factory=list)

    def describe_resumed(self) -> str:
        return f" ({self.already_there} of {self.planned} already there)" if self.already_there else ""


class Asker:
    """Runs at most `concurrency` requests at once, and stores each answer as it arrives. `read_clock` dates them."""

    def __init__(
        self, plan: Plan, provider: Provider, report: SessionReport, *, concurrency: int, read_clock: Callable[[], str]
    ) -> None:
        self.provider, self.report = provider, report
        self._plan, self._concurrency, self._read_clock = plan, concurrency, read_clock
        self._digests = {problem.name: problem.digest for problem in plan.problems}
        self._free = asyncio.Semaphore(concurrency)
        self._writers = ThreadPoolExecutor(max_workers=_WRITERS, thread_name_prefix="store")
        self._begun = 0
        self._last_write: asyncio.Future[Path] | None = None

    async def close(self) -> None:
        self._writers.shutdown()
        await self.provider.close()

    async def ask(
        self,
        key: SampleKey,
        prompt: Prompt,
        provenance: Mapping[str, object],
        show: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`show` is entered during the request. Raises ProviderError and StoreError."""
        manifest = self._plan.manifest
        request = CompletionRequest(
            key=key, prompt=prompt, model=manifest.model, temperature=manifest.temperature,
            max_tokens=manifest.max_tokens,
        )  # fmt: skip
        async with self._free:
            if self._begun < self._concurrency:
                self._begun += 1
                await asyncio.sleep((self._begun - 1) * _STAGGER_S)
            with show():
                completion = await self.provider.complete(request)
            candidate = extract_candidate(completion, prompt.language)
            # Begins before any wait, so that cancellation does not lose a received answer.
            await self.store(key, prompt, completion, candidate, provenance)
        self.report.stored += 1
        self.report.without_code += candidate is None
        if notes := explain_incomplete(completion, candidate, manifest.max_tokens):
            self.report.incomplete[key] = notes

    async def store(
        self,
        key: SampleKey,
        prompt: Prompt,
        completion: Completion,
        candidate: Candidate | None,
        provenance: Mapping[str, object],
    ) -> None:
        origin = {name: getattr(self._plan.manifest, name) for name in _ORIGIN}
        origin |= {"problem_digest": self._digests.get(key.problem), "created_at": self._read_clock()}
        write = partial(
            write_sample, self._plan.run_dir, key=key, prompt=prompt, completion=completion, candidate=candidate,
            provenance=origin | dict(provenance),
        )  # fmt: skip
        writing = asyncio.get_running_loop().run_in_executor(self._writers, write)
        earlier, self._last_write = self._last_write, writing
        await asyncio.shield(writing)
        if earlier is not None:  # answers are evaluated in the order in which they arrived
            await asyncio.wait([earlier])
