"""Opens workers for candidate and baseline, answers their build requests, and attributes failed allocations."""

from __future__ import annotations

import json
import random
import traceback
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from threading import Thread
from typing import Any, Literal

from harness.builder.builder import Builder
from harness.domain import (
    EAGER,
    EMULATED,
    LIBRARY_CLASS,
    AnswerBuild,
    BuildRequest,
    BuildResult,
    BuiltAhead,
    Candidate,
    CandidateFailure,
    Finding,
    HarnessError,
    Outcome,
    TimedBaseline,
)
from harness.domain.options import TimeLimits
from harness.evaluation.correctness.checks import compare_expected
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.emulated.sanitizer import KernelChecker
from harness.evaluation.model_construction import construct_with_state
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.timing.replay_statistics import count_rounds
from harness.languages import LANGUAGES, compiles_in_worker
from harness.languages.environment import may_change_compilers
from harness.languages.torch import INDUCTOR
from harness.problems.loading import workload_source
from harness.protocol.channel import Mode
from harness.sandbox.devices import Device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.gpu.recording import KeptBaseline
from harness.sandbox.kernel_compiler import compile_again
from harness.sandbox.memory_limits import is_out_of_memory
from harness.sandbox.model_session import ModelSession, open_session
from harness.sandbox.worker_client import Program
from harness.sandbox.workers_ahead import WorkersAhead

SECOND_LOAD_SHARE = 1 / 8  # of the time limits


class CandidateBuilds:
    """Thread-safe. `builds_beside` also builds for `checker`, which needs an untimed device."""

    def __init__(
        self, builder: Builder, checker: KernelChecker | None, nvcc: NvccCheck | None, *, builds_beside: bool = False
    ) -> None:
        self.builder = builder
        self._checker = checker
        self._builds_beside = builds_beside
        self.nvcc = nvcc
        self._built_ahead: dict[str, BuildResult] = {}
        self._hung_ahead: set[str] = set()  # digests of candidates

    def add_ahead(self, ahead: BuiltAhead, candidate: Candidate | None) -> None:
        self._built_ahead |= ahead.builds
        if ahead.hung and candidate is not None:
            self._hung_ahead.add(candidate.digest)

    def reduce_limits(self, limits: TimeLimits, candidate: Candidate) -> TimeLimits:
        """Return the limits for a candidate: only one that compiles in its worker has longer for its first call."""
        share = SECOND_LOAD_SHARE if candidate.digest in self._hung_ahead else 1.0
        first_call_s = limits.first_call_s if compiles_in_worker(candidate.source) else limits.call_s
        return replace(limits, load_s=limits.load_s * share, first_call_s=first_call_s)

    def answer_for(self, record: EvaluationRecord, candidate: Candidate, *, ahead: bool = False) -> AnswerBuild:
        """Return a function that builds and records requests; `ahead` also builds for the sanitizer."""

        def answer(request: BuildRequest) -> BuildResult:
            refusal = LANGUAGES[candidate.language].refuses(request)
            result = self._refuse(request, refusal) if refusal else self._build(request, ahead=ahead)
            record.add_build(request, result)
            return result

        return answer

    def _build(self, request: BuildRequest, *, ahead: bool) -> BuildResult:
        if self._builds_beside and not ahead and self._checker is not None and request.needs_cuda:
            Thread(target=self._checker.build_ahead, args=(request,), daemon=True).start()
        result = self.builder.build(request)
        if self.nvcc is not None:
            result = self.nvcc.correct(result)
        if ahead and self._checker is not None and request.needs_cuda and result.extension is not None:
            self._checker.build_ahead(request)
        if result.status == "cached":
            # The record shows the prebuild with its duration, once.
            result = self._built_ahead.pop(result.key, result)
        return result

    def _refuse(self, request: BuildRequest, reason: str) -> BuildResult:
        key, log = self.builder.key(request), f"error: {reason}"
        return BuildResult(key=key, status="refused", extension=None, log=log, duration_s=0.0)


class NvccCheck:
    def __init__(self, compiler: Builder) -> None:
        self._compiler = compiler
        self._corrected: dict[str, BuildResult] = {}  # by key of the emulated build

    def correct(self, result: BuildResult) -> BuildResult:
        return self._corrected.get(result.key, result)

    def find_disagreement(self, record: EvaluationRecord) -> bool:
        """Return True if a result changed, so the candidate must run again."""
        differs = False
        with record.phase("nvcc"):
            for request, result in zip(record.requests, record.builds, strict=True):
                if not request.needs_cuda or result.strategy != EMULATED or result.key in self._corrected:
                    continue
                try:
                    corrected = reconcile_builds(result, self._compiler.build(request))
                except HarnessError as error:
                    record.note("nvcc", f"not compiled with nvcc: {error}")
                    continue
                if corrected is not result:
                    self._corrected[result.key] = corrected
                    differs = True
        return differs


def may_change_verdict(builds: Iterable[BuildResult], outcome: Outcome) -> bool:
    """nvcc may refuse a correct program, or build one that the emulator does not. It excuses no failure at run time."""
    return outcome in (Outcome.CORRECT, Outcome.NOT_RUN) or any(build.extension is None for build in builds)


def reconcile_builds(emulated: BuildResult, compiled: BuildResult) -> BuildResult:
    """A failure of nvcc counts; one of the emulator alone is a gap in its coverage."""
    if compiled.status in ("failed", "refused"):
        return compiled
    if compiled.extension is not None and emulated.status == "failed":
        log = f"nvcc builds it, the emulated device does not:\n{emulated.log}"
        return replace(emulated, status="uncovered", log=log)
    return emulated


# Max-autotune's own graphs would gain nothing: recorded work is replayed as a graph.
COMPILE_MODES = {"compile": "default", "compile-max-autotune": "max-autotune-no-cudagraphs"}
MOST_CHARACTERS = 300


class BaselineFailure(Exception):
    """The message is the reason."""

    def describe(self, baseline: TimedBaseline) -> Finding:
        severity: Literal["note", "warning"] = "note" if isinstance(self, BaselineUnavailable) else "warning"
        return Finding(check="baseline", severity=severity, message=f"not timed against {baseline.name}: {self}")


class BaselineUnavailable(BaselineFailure):
    """The problem or the device has no such baseline."""


@contextmanager
def blaming_baseline() -> Iterator[None]:
    """Raises BaselineFailure instead of a failure of the worker, unless memory is short, which may be repeated."""
    try:
        yield
    except CandidateFailure as failure:
        if failure.outcome is Outcome.OUT_OF_MEMORY:
            raise
        raise BaselineFailure(f"{failure.outcome}: {failure.message}"[:MOST_CHARACTERS]) from failure


@contextmanager
def sparing_memory() -> Iterator[None]:
    """Raises BaselineFailure where memory is short: a further baseline is not worth another evaluation."""
    try:
        yield
    except CandidateFailure as failure:
        if failure.outcome is not Outcome.OUT_OF_MEMORY:
            raise
        raise BaselineFailure(f"memory was short: {failure.message}"[:MOST_CHARACTERS]) from failure


def require_right(session: ModelSession, reference: Reference) -> None:
    """Compare a call with the truth. Raises BaselineFailure."""
    seed = random.Random(f"baseline {reference.secret}").getrandbits(62)
    inputs = reference.make_inputs(seed)
    session.reset_state()
    run = session.call(inputs, reference.device, look=False)
    outcome, trial = compare_expected(run, reference.expect(inputs, own_first=True), reference, "baseline")
    if outcome is not None:
        raise BaselineFailure(f"its outputs are wrong: {trial.message}"[:MOST_CHARACTERS])


HOARD_BYTES = 3 << 30  # allowed beyond the planned memory of a worker: others may have started since
HOARD_SHARE = 0.5  # of the planned memory, also allowed


@dataclass(frozen=True, slots=True)
class Hoarding:
    held_bytes: int
    planned_bytes: int

    @property
    def is_excessive(self) -> bool:
        return self.held_bytes > self.planned_bytes * (1 + HOARD_SHARE) + HOARD_BYTES

    def __str__(self) -> str:
        return f"its process holds {self.held_bytes >> 20} MiB of the device; {self.planned_bytes >> 20} were planned"


class MemoryCharge:
    """Create it before the worker, which may use `planned_bytes`; the evaluator uses `shared_bytes` outside torch."""

    def __init__(self, device: Device, planned_bytes: int, shared_bytes: int) -> None:
        self._device = device
        self._planned_bytes = planned_bytes
        self._before_bytes = self._count_others() + shared_bytes

    def measure(self) -> Hoarding:
        return Hoarding(max(self._count_others() - self._before_bytes, 0), self._planned_bytes)

    @contextmanager
    def attributing_failures(self) -> Iterator[None]:
        """Raises out_of_memory if an evaluator's allocation fails while the worker holds far more than planned."""
        try:
            yield
        except CandidateFailure as failure:
            if failure.outcome is not Outcome.OUT_OF_MEMORY or not self._device.count_used_bytes():
                raise
            message = f"{failure.message}; {self.measure()}"
            raise CandidateFailure(failure.outcome, message, failure.findings) from failure
        except Exception as error:
            hoarding = self.measure()
            if not is_out_of_memory(error) or not hoarding.is_excessive:
                raise
            message = f"an allocation of the evaluator failed: {hoarding}"
            finding = Finding(check="memory_hoarding", severity="fatal", message=message, evidence=str(error)[:2000])
            raise CandidateFailure(Outcome.OUT_OF_MEMORY, message, (finding,)) from error

    def _count_others(self) -> int:
        return self._device.count_used_bytes() - self._device.count_own_bytes()


def forget_frames(error: BaseException) -> None:
    """Clear the locals of all frames of an exception and its causes, since they keep tensors alive."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        left += [cause for cause in (one.__cause__, one.__context__) if cause is not None]


SUFFIX = ".autotune.json"
MOST_NOTES, MOST_CHARACTERS = 8, 200


def note_autotuned(files: Mapping[str, str]) -> tuple[Finding, ...]:
    chosen = sorted(_describe_choices(files))
    return tuple(Finding(check="autotuned", severity="note", message=one) for one in chosen[:MOST_NOTES])


def _describe_choices(files: Mapping[str, str]) -> Iterator[str]:
    for path, content in files.items():
        if path.endswith(SUFFIX):
            try:
                choice = _describe_choice(json.loads(b64decode(content)))
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                continue  # not Triton's
            yield f"{PurePath(path).name.removesuffix(SUFFIX)} {choice}"[:MOST_CHARACTERS]


def _describe_choice(written: dict[str, Any]) -> str:
    timings = written["configs_timings"]
    config, _ = min(timings, key=lambda timing: timing[1])
    values = {**config["kwargs"], "num_warps": config["num_warps"], "num_stages": config["num_stages"]}
    chosen = ", ".join(f"{name} {value}" for name, value in values.items())
    return f"for {tuple(written['key'])}: {chosen}, of {len(timings)} configurations"


ATTRIBUTING_WORKERS, TIMED_WORKERS = 2, 1
READ_COMPILED_S = 10.0
FASTEST = 20.0  # times shorter than the reference's call may the candidate's work be, for which replayers are started
# Modules of compilers that write files in the worker, by the word in a program that uses them.
PRELOADS = {rules.word: rules.preloads for rules in LANGUAGES.values() if rules.preloads}
EMULATION_PRELOADS = {rules.word: rules.emulation_preloads for rules in LANGUAGES.values() if rules.emulation_preloads}


class ModelWorkers:
    def __init__(
        self, ahead: WorkersAhead, builds: CandidateBuilds, limits: TimeLimits, *, is_emulated: bool = False
    ) -> None:
        self.ahead = ahead
        self.builds = builds
        self._limits = limits
        self._is_emulated = is_emulated
        # Files that the candidate's compilers wrote in the first worker of each case; as untrusted as its source.
        self._compiled: dict[str, dict[str, str]] = {}  # by the candidate's digest
        self._compiled_again: dict[str, bytes] = {}  # the candidate's kernels, by what its workers said of them
        self._preloads = True

    def start_from(self, forkserver: Forkserver) -> ModelWorkers:
        """Return one whose workers another forkserver starts, and none of them ahead."""
        return ModelWorkers(WorkersAhead(forkserver, None), self.builds, self._limits)

    def begin(self, candidate: Candidate | None, compiled: dict[str, str]) -> None:
        """Call before each evaluation, with files that were `compiled` ahead. Compilers read the environment when they
        are imported, so none is preloaded for a program that may change what they read; the emulated ones do not.
        """
        source = "" if candidate is None else candidate.source
        self._compiled = {} if candidate is None else {candidate.digest: compiled}
        self._compiled_again = {}
        if self._is_emulated:
            self._preloads = False
            self.ahead.preload(_list_preloads(source, EMULATION_PRELOADS))
            return
        self._preloads = not (may_change_compilers(source) and _list_preloads(source))
        if not self._preloads:
            self.ahead.forget_preloaded()

    def keep_compiled(self, candidate: Candidate, session: ModelSession) -> tuple[Finding, ...]:
        """Give the files that its compilers wrote to the candidate's next workers. The notes state the choices."""
        if not _list_preloads(candidate.source):
            return ()
        files = session.client.read_compiled(timeout_s=READ_COMPILED_S)
        self._compiled[candidate.digest] = files or self._compiled.get(candidate.digest, {})  # too many: {}
        return note_autotuned(files)

    def compile_again(self, cores: Collection[int], descriptions: Sequence[str]) -> list[bytes]:
        """See `kernel_compiler`; what an earlier case of the candidate had is known."""
        return compile_again(self.ahead.forkserver, cores, self._compiled_again, descriptions)

    def prepare(self, reference: Reference, attributes: bool, times: bool) -> None:
        if reference.has_full_plan:
            kept = [one for one in reference.baselines.values() if isinstance(one, KeptBaseline)]
            attributing = 1 if self._is_emulated else ATTRIBUTING_WORKERS
            count = attributing * (attributes and not times) + TIMED_WORKERS * (times and not kept)
            count = max(count, 0 if attributes else 1)  # one for the next case; replays need none
            rounds = count_rounds(1e6 * reference.call_s / FASTEST)
            replayers = 2 * rounds + reference.requires_same_bits - max((len(one.replayers) for one in kept), default=0)
            self.ahead.prepare(count, replayers if times else 0)

    @contextmanager
    def open_candidate(
        self,
        candidate: Candidate,
        reference: Reference,
        answer_build: AnswerBuild | None = None,
        *,
        mode: Mode = "plain",
        limits: TimeLimits | None = None,
        is_timed: bool = False,
    ) -> Iterator[ModelSession]:
        program = Program(
            source=candidate.source,
            answer_build=answer_build or self.builds.builder.build,
            limits=limits or self._limits,
            allow_tf32=reference.loaded.problem.allow_tf32,
            mode=mode,
            compiled=self._compiled.get(candidate.digest, {}),
        )
        with self._open(program, reference, is_timed=is_timed) as session:
            yield session

    @contextmanager
    def open_constructed_candidate(self, candidate: Candidate, reference: Reference) -> Iterator[ModelSession]:
        limits = self.builds.reduce_limits(self._limits, candidate)
        with self.open_candidate(candidate, reference, limits=limits, is_timed=True) as session:
            construct_with_state(session, reference)
            yield session

    @contextmanager
    def open_baseline(self, reference: Reference, baseline: TimedBaseline) -> Iterator[ModelSession]:
        """Raises BaselineFailure if it is unavailable, fails, or gives wrong outputs."""
        if baseline.name == "eager-tf32" and not reference.device.has_tf32:
            raise BaselineUnavailable(f"{reference.device.name} has no TF32 units")
        if baseline.name == "library" and not reference.loaded.has_library:
            raise BaselineUnavailable(f"the problem's file has no class {LIBRARY_CLASS}(Model)")
        compile_mode = COMPILE_MODES.get(baseline.name, "")
        if compile_mode and self._preloads:
            self.ahead.preload(INDUCTOR)
        program = Program(
            source=baseline.source or workload_source(reference.loaded),
            entry=baseline.entry,
            answer_build=self.builds.builder.build if baseline.source else None,
            limits=self._limits,
            allow_tf32=baseline.name == "eager-tf32" or reference.loaded.problem.allow_tf32,
        )
        with ExitStack() as stack:
            with blaming_baseline():
                session = stack.enter_context(self._open(program, reference, is_timed=True))
                construct_with_state(session, reference, compile_mode=compile_mode)
                if baseline not in EAGER:
                    require_right(session, reference)
            yield session

    @contextmanager
    def _open(self, program: Program, reference: Reference, *, is_timed: bool) -> Iterator[ModelSession]:
        """Timed outputs stay on the device if two workers fit. The candidate ends before timing continues."""
        device, footprint, trusted = reference.device, reference.footprint, program.answer_build is None
        if self._preloads:
            self.ahead.preload(_list_preloads(program.source))
        ends_beside = reference.has_full_plan and (trusted or not is_timed)
        planned_bytes = reference.need.count_worker_bytes(footprint.kept_calls) - footprint.arena_bytes
        device.release_allocator_cache()
        charge = MemoryCharge(device, planned_bytes, footprint.arena_bytes)
        with (
            open_session(
                partial(self.ahead.spawn, ends_beside=ends_beside),
                device,
                footprint,
                program,
                keeps_on_host=reference.computes_on is not None and not (is_timed and reference.plan.baseline_beside),
            ) as session,
            nullcontext() if trusted else charge.attributing_failures(),
        ):
            yield session


def _list_preloads(source: str, preloads: Mapping[str, tuple[str, ...]] = PRELOADS) -> tuple[str, ...]:
    return tuple(module for word, modules in preloads.items() if word in source for module in modules)
