"""One evaluator for all tests of a process. Imports only the standard library at the top."""

from contextlib import contextmanager
from unittest.mock import patch

TINY_PROBLEM = """
import torch
from torch import nn

rows, columns = 64, 65


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []
"""


class Bench:
    """An evaluator with a warm forkserver in the tests' own process: what it takes to evaluate one candidate
    quickly."""

    def __init__(self, *, forkserver, isolation, cache, device="cpu", call_s=15.0, load_s=30.0):
        from harness.builder.builder import Builder
        from harness.builder.cache import find_machine_folder
        from harness.builder.toolchain import probe_toolchain
        from harness.evaluation.steps import PreparedReferences
        from harness.evaluation.timing.roofline import PeakStore
        from harness.evaluation.timing.system_conditions import NoiseFloors
        from harness.sandbox.devices import Device, open_device
        from harness.sandbox.policy import clean_environment, interpreter_folders
        from harness.sandbox.workers_ahead import WorkersAhead

        self._limits = {"first_call_s": call_s, "call_s": call_s, "load_s": load_s}
        self._device = device if isinstance(device, Device) else open_device(device)
        self._peaks = PeakStore(find_machine_folder(cache))
        self._noise = NoiseFloors(find_machine_folder(cache))
        self.forkserver = forkserver
        self.workers = WorkersAhead(forkserver, self._device)
        self._prepared = PreparedReferences(self.workers)
        self.builder = Builder(
            cache=cache,
            toolchain=probe_toolchain(),
            wrap=isolation.wrap,
            readable=interpreter_folders(),
            environment=clean_environment,
        )

    def evaluate(
        self, source, problem=TINY_PROBLEM, *, time=False, plan=None, attribute_work=None,
        language=None, rival=None, seed=1, compiled=None, baselines=None, asan=False, measure_noise=False,
        probed=False, further=False, **limits,
    ):  # fmt: skip
        """The evaluation of one candidate on a problem given as source, with files `compiled` ahead. Work is attributed
        on a GPU, and on a CPU if asked for, which takes further workers. Robustness is probed only if asked for, and
        then with time for all probes; so are further calls of small problems. Inputs and the number of calls
        are the same in every run."""
        from harness.domain import EAGER, BuiltAhead, Candidate, Problem, Subject
        from harness.domain.options import TimeLimits
        from harness.evaluation.correctness import checks, robustness
        from harness.evaluation.evaluator import CandidateEvaluator
        from harness.evaluation.settings import EvaluationSettings, TimingPlan

        if "call_s" in limits:
            limits = {"first_call_s": limits["call_s"]} | limits
        settings = EvaluationSettings(
            limits=TimeLimits(**(self._limits | limits)),
            plan=plan or TimingPlan(budget_s=1.0, allow_load=True),
            fidelity="full" if time else "correctness",
            attribute_work=self._device.replays_calls if attribute_work is None else attribute_work,
            measure_noise=measure_noise,
            asan=asan,
        )
        evaluator = CandidateEvaluator(
            device=self._device, builder=self.builder, workers=self.workers, settings=settings,
            peaks=self._peaks, noise=self._noise, prepared=self._prepared,
        )  # fmt: skip
        baselines = baselines or EAGER
        language = language or ("cuda" if self._device.replays_calls else "cpp")
        candidate = Candidate(source=source, language=language, rule="file")
        found = problem if isinstance(problem, Problem) else Problem(name="add", suite="tiny", source=problem)
        subject = Subject(
            run="bench", sample=0, turn=0, model="m", prompt="-", suite="tiny", problem=found.name,
            problem_digest=found.digest, candidate_digest=candidate.digest, language=language,
            device=self._device.name, workload="full", baseline=baselines[0].name,
        )  # fmt: skip
        ahead = BuiltAhead(compiled=compiled or {})
        budgets = patch.multiple(robustness, BUDGET_S=60.0 if probed else 0.0, BUDGET_SHARE=0.0)
        with budgets, patch.multiple(checks, FURTHER_S=0.0, LEAST_FURTHER=checks.LEAST_FURTHER if further else 0):
            return evaluator.evaluate(
                subject, found, candidate, seed=seed, rival=rival, ahead=ahead, baselines=baselines
            )

    def compile_ahead(self, source, problem, gpu="H100"):
        """The files that a Triton program's kernels are compiled to for that GPU."""
        from harness.domain import Candidate

        candidate = Candidate(source=source, language="triton", rule="file")
        return self.compilation_ahead(gpu).compile(problem, "full", candidate)

    def compilation_ahead(self, gpu="H100"):
        from harness.domain.options import TimeLimits
        from harness.evaluation.emulated.jit_compilation import CompilationAhead, LaunchChecker
        from harness.sandbox.devices import EmulatedDevice

        limits = TimeLimits(first_call_s=100.0, call_s=100.0, load_s=100.0)
        device, build = EmulatedDevice(gpu), self.builder.build
        return CompilationAhead(
            LaunchChecker(device=device, forkserver=self.forkserver, answer_build=build, limits=limits)
        )

    @property
    def device(self):
        return self._device

    def use(self, device):
        """Evaluates on that device from now on."""
        self._device = device

    @contextmanager
    def open_session(self, source, problem=TINY_PROBLEM, *, forkserver=None, **worker_limits):
        """A worker that has imported a candidate, without a verdict: (session, the evaluator's own reference)."""
        from harness.domain import Problem
        from harness.domain.options import TimeLimits
        from harness.evaluation.correctness.reference import prepare_reference
        from harness.problems.loading import load_problem
        from harness.sandbox.model_session import open_session
        from harness.sandbox.worker_client import Program
        from harness.sandbox.worker_process import WorkerLimits

        loaded = load_problem(Problem(name="add", suite="tiny", source=problem), "full")
        reference = prepare_reference(loaded, self._device, 1, 2)
        worker_limits = WorkerLimits(**({"memory_bytes": None} if self._device.replays_calls else {}) | worker_limits)
        program = Program(
            source=source,
            entry="ModelNew",
            answer_build=self.builder.build,
            limits=TimeLimits(**self._limits),
            threads=1,
            allow_tf32=False,
        )
        start = lambda _: (forkserver or self.forkserver).spawn(worker_limits)  # noqa: E731
        with open_session(start, self._device, reference.footprint, program) as session:
            yield session, reference

    def call_once(self, source, problem=TINY_PROBLEM, **worker_limits):
        """What one call of a candidate leaves in the output buffers."""
        with self.open_session(source, problem, **worker_limits) as (session, reference):
            session.construct(1, reference.loaded.init_inputs)
            return session.call(reference.loaded.make_inputs(3, self._device.torch_device), self._device)

    def close(self):
        self.builder.stop()
        self._prepared.close()
        self.workers.close()
