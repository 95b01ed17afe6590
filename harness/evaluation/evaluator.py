"""Evaluates candidates for one language on one device, and decides about repetitions; `method` has the steps.

A candidate that fails gets an outcome. Faults of the problem, the harness or the machine end as `problem_error`,
`harness_error` or `not_run`.
"""

import platform
import secrets
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache

import harness
from harness.builder.builder import Builder
from harness.builder.toolchain import Toolchain
from harness.domain import (
    EAGER,
    FIDELITY,
    NOTHING_AHEAD,
    BuildToolError,
    BuiltAhead,
    Candidate,
    CandidateFailure,
    Evaluation,
    Finding,
    HarnessError,
    Outcome,
    Problem,
    ProblemError,
    ProblemTooLarge,
    ReferenceStopped,
    Rival,
    Subject,
    TimedBaseline,
    WorkloadName,
)
from harness.evaluation.certificate import Certificate
from harness.evaluation.emulated.jit_compilation import CompilationAhead
from harness.evaluation.emulated.sanitizer import KernelChecker
from harness.evaluation.integrity.sandbox_causes import explaining_missing_packages, note_output
from harness.evaluation.method import evaluate_candidate
from harness.evaluation.model_construction import find_load_error
from harness.evaluation.model_workers import CandidateBuilds, ModelWorkers, NvccCheck, forget_frames, may_change_verdict
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.settings import EvaluationSettings
from harness.evaluation.steps import CandidateTask, EvaluationTools, PreparedReferences
from harness.evaluation.timing.roofline import PeakStore, Roofline
from harness.evaluation.timing.system_conditions import NoiseFloors
from harness.hardware.host import count_cores, cpu_name, read_torch_build
from harness.languages import LANGUAGES
from harness.sandbox.devices import Device
from harness.sandbox.memory_limits import is_out_of_memory
from harness.sandbox.workers_ahead import WorkersAhead

Attempt = Callable[[EvaluationRecord], None]  # raises on any outcome but correct
Repetition = Callable[[EvaluationRecord, Outcome, str], EvaluationRecord | None]  # the record of another attempt

DISTURBED = ("device_busy", "pause")  # checks that a busy machine may fail


def run_attempts(
    record: EvaluationRecord, attempt: Attempt, device: Device | None, repetitions: Sequence[Repetition]
) -> tuple[EvaluationRecord, Outcome, str]:
    """Return record, outcome and message of the last attempt. Each repetition may request one more."""
    outcome, message = _run_attempt(record, attempt, device)
    for repetition in repetitions:
        again = repetition(record, outcome, message)
        if again is not None:
            record = again
            outcome, message = _run_attempt(record, attempt, device)
    return record, outcome, message


def repeat_if_disturbed(record: EvaluationRecord, outcome: Outcome, message: str) -> EvaluationRecord | None:
    """Use a new seed after a suspicion that a busy machine may cause."""
    fatal = [finding.check for finding in record.findings if finding.severity == "fatal"]
    if outcome is not Outcome.SUSPECT or not any(check in DISTURBED for check in fatal):
        return None
    note = Finding(check="repeated", severity="note", message=f"evaluated a second time: {message[:300]}")
    return EvaluationRecord(seed=secrets.randbits(62), findings=[note])


def repeat_with_less_memory(record: EvaluationRecord, outcome: Outcome, message: str) -> EvaluationRecord | None:
    is_planned = record.is_short and record.thrift == "planned"
    return record.repeat_smaller(outcome, message) if is_planned else None


def _run_attempt(record: EvaluationRecord, attempt: Attempt, device: Device | None) -> tuple[Outcome, str]:
    try:
        attempt(record)
        return Outcome.CORRECT, ""
    except Exception as error:  # noqa: BLE001 - an error of the harness must not end later evaluations
        outcome, message = _explain(record, error)
        forget_frames(error)
    finally:
        if device is not None:
            device.release_memory()
    return outcome, message


def _explain(record: EvaluationRecord, error: Exception) -> tuple[Outcome, str]:
    if isinstance(error, CandidateFailure):
        record.findings += error.findings
        record.is_short = error.outcome is Outcome.OUT_OF_MEMORY
        return error.outcome, error.message
    record.is_short = is_out_of_memory(error)
    if isinstance(error, ProblemTooLarge | BuildToolError):
        return Outcome.NOT_RUN, str(error)
    if record.is_short:
        return Outcome.NOT_RUN, f"the evaluator ran out of device memory ({record.memory}): {error}"
    if isinstance(error, ProblemError):
        return Outcome.PROBLEM_ERROR, str(error)
    if isinstance(error, HarnessError):
        return Outcome.HARNESS_ERROR, str(error)
    message = f"unexpected {type(error).__name__}: {error}"
    evidence = "".join(traceback.format_exception(error))[-8000:]
    record.findings.append(Finding(check="harness", severity="fatal", message=message, evidence=evidence))
    return Outcome.HARNESS_ERROR, message


@contextmanager
def require_dtype(problem: Problem, device: Device | None) -> Iterator[None]:
    """Raises CandidateFailure (not_run) for a device without the dtype, and instead of a ProblemError inside."""
    if not problem.precision:
        yield
        return
    if problem.precision == "tf32" and device is not None and not device.has_tf32:
        raise CandidateFailure(Outcome.NOT_RUN, f"{device.name} has no TF32 units: --dtype tf32 needs an Ampere GPU")
    try:
        yield
    except (ProblemTooLarge, ReferenceStopped):
        raise
    except ProblemError as error:
        raise CandidateFailure(Outcome.NOT_RUN, f"not evaluated in {problem.precision}: {error}") from error


class CandidateEvaluator:
    """With `device` None, candidates are only built and loaded. Findings of `checker` decide only on an emulated
    device. `prebuild` is thread-safe, and `evaluate` on untimed devices. Timing runs inside `quiet`, which may wait.
    """

    def __init__(
        self,
        *,
        device: Device | None,
        builder: Builder,
        workers: WorkersAhead,
        settings: EvaluationSettings,
        noise: NoiseFloors | None = None,
        peaks: PeakStore | None = None,
        certificate: Certificate | None = None,
        checker: KernelChecker | None = None,
        compiler: Builder | None = None,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
        prepared: PreparedReferences | None = None,
        ahead: CompilationAhead | None = None,
    ) -> None:
        self._compilation = ahead
        nvcc = None if compiler is None else NvccCheck(compiler)
        self._certificate = certificate
        facts = describe_environment(builder.toolchain, device)
        self._environment = facts if settings.fidelity == "full" else (*facts, (FIDELITY, settings.fidelity))
        is_timed = device is None or device.is_timed
        is_emulated = device is not None and device.is_emulated
        builds = CandidateBuilds(builder, checker, nvcc, builds_beside=not is_timed)
        model_workers = ModelWorkers(workers, builds, settings.limits, is_emulated=is_emulated)
        self._tools = EvaluationTools(
            device=device,
            settings=settings,
            builds=builds,
            workers=model_workers,
            prepared=prepared or PreparedReferences(workers),
            noise=(noise or NoiseFloors(None)) if settings.measure_noise else None,
            environment=dict(self._environment),
            roofline=Roofline(peaks or PeakStore(None)),
            checker=checker,
            quiet=quiet,
        )

    def evaluate(
        self,
        subject: Subject,
        problem: Problem,
        candidate: Candidate | None,
        *,
        seed: int | None = None,
        ahead: BuiltAhead = NOTHING_AHEAD,
        rival: Rival | None = None,
        baselines: tuple[TimedBaseline, ...] = EAGER,
    ) -> Evaluation:
        """Raises only exceptions that must stop the program, such as KeyboardInterrupt. The `seed` of an earlier
        evaluation repeats its inputs and weights. A timed candidate is compared with the `rival`.
        """
        tools = self._tools

        def attempt(record: EvaluationRecord) -> None:
            if candidate is None:
                raise CandidateFailure(Outcome.NO_CODE, "no program that defines ModelNew was found in the answer")
            task = CandidateTask(
                record=record,
                problem=problem,
                subject=subject,
                candidate=candidate,
                ahead=ahead,
                rival=rival,
                baselines=baselines,
            )
            with (
                explaining_missing_packages(problem, emulated=tools.is_emulated),
                require_dtype(problem, tools.device),
                tools.workers.ahead.stopped_at_end(),
            ):
                tools.prepared.begin(problem, record.seed)
                evaluate_candidate(tools, task)

        tools.builds.add_ahead(ahead, candidate)
        tools.workers.begin(candidate, ahead.compiled)
        record, outcome, message = run_attempts(
            EvaluationRecord(seed=secrets.randbits(62) if seed is None else seed),
            attempt,
            tools.device,
            (repeat_if_disturbed, repeat_with_less_memory, self._repeat_with_nvcc),
        )
        forkserver = tools.workers.ahead.forkserver
        level = forkserver.isolation
        record.findings += forkserver.isolation_warnings()
        record.findings += note_output(forkserver.take_printed_bytes())
        return record.conclude(
            subject,
            outcome,
            message,
            environment=self._environment,
            isolation=level,
            certificate="" if self._certificate is None else self._certificate.digest_behind(level),
        )

    def prebuild(self, problem: Problem, workload: WorkloadName, candidate: Candidate) -> BuiltAhead:
        if find_load_error(candidate.source) is not None:
            return NOTHING_AHEAD
        if not candidate.has_extensions:
            compilation = self._compilation
            return BuiltAhead(compiled=compilation.compile(problem, workload, candidate) if compilation else {})
        record, hung = EvaluationRecord(seed=0), False
        try:
            self._tools.load_only(record, problem, workload, candidate)
            if not record.builds and self._compilation is not None:
                answer = self._tools.builds.answer_for(record, candidate, ahead=True)
                self._compilation.build(problem, workload, candidate, answer)
        except CandidateFailure as failure:
            hung = failure.outcome is Outcome.TIMEOUT
        except HarnessError:
            pass  # occurs again, and is recorded, in the evaluation
        return BuiltAhead(builds={build.key: build for build in record.builds}, hung=hung)

    def _repeat_with_nvcc(self, record: EvaluationRecord, outcome: Outcome, message: str) -> EvaluationRecord | None:
        """Repeat if nvcc and the emulator disagree on a build. It takes a minute, so it must matter."""
        nvcc = self._tools.builds.nvcc
        if nvcc is None or not may_change_verdict(record.builds, outcome) or not nvcc.find_disagreement(record):
            return None
        return EvaluationRecord(seed=record.seed, thrift=record.thrift)


def describe_environment(toolchain: Toolchain, device: Device | None) -> tuple[tuple[str, str], ...]:
    torch = read_torch_build()
    facts = {
        "harness": harness.__version__,
        "python": platform.python_version(),
        "torch": torch.version,
        "torch_cuda": torch.cuda,
        **_find_versions(),
        "compiler": toolchain.compiler_version,
        "nvcc": toolchain.nvcc_version,
        "architecture": toolchain.architecture,
        "os": f"{platform.system()} {platform.release()}",
        "cpu": cpu_name(),
        "threads": str(count_cores()),
    }
    if device is not None:
        facts |= device.describe()
    return tuple((name, value) for name, value in facts.items() if value is not None)


@cache
def _find_versions() -> dict[str, str | None]:
    """Return versions of the languages' installed compilers."""
    return {rules.name: rules.version for rules in LANGUAGES.values() if rules.package}
