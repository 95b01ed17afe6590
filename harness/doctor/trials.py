"""Tests build strategies with an extension, languages with a program, and makes the precompiled header cache."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.builder.builder import Builder
from harness.builder.cache import default_cache_folder
from harness.builder.error_excerpt import name_first_error
from harness.builder.toolchain import Toolchain, probe_toolchain
from harness.doctor.machine import MachinePart
from harness.domain import (
    EMULATED,
    BuildRequest,
    BuildResult,
    BuildToolError,
    Candidate,
    Evaluation,
    Language,
    Outcome,
    Problem,
)
from harness.emulator import Emulation
from harness.executors.device_evaluators import DeviceEvaluators
from harness.executors.executor import Origin, make_task
from harness.executors.settings import LocalSettings, Setup
from harness.hardware.gpus import DEFAULT_TARGET, find_gpu_model
from harness.hardware.host import count_cores
from harness.languages import CPU_LANGUAGE, GPU_LANGUAGE, LanguageRules, find_devices
from harness.sandbox.devices import open_device
from harness.sandbox.policy import clean_environment, interpreter_folders, probe_isolation

_CUDA = """
#include <torch/extension.h>
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  twice<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
_CUDA_REQUEST = BuildRequest(
    name="trial", cpp_sources=("torch::Tensor run(torch::Tensor x);",), cuda_sources=(_CUDA,), functions=(("run", ""),)
)
_CPP_REQUEST = BuildRequest(
    name="trial", cpp_sources=("torch::Tensor run(torch::Tensor x) { return x + x; }",), functions=(("run", ""),)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strategy:
    language: Language
    name: Literal["fast", "plain", "emulated"]

    @property
    def request(self) -> BuildRequest:
        """Use a name per strategy, since all share one cache."""
        request = _CUDA_REQUEST if self.language == GPU_LANGUAGE else _CPP_REQUEST
        return replace(request, name=f"{self.name}_strategy")


def try_strategies(toolchain: Toolchain, cache: Path | None, isolation: str = "auto") -> Iterator[MachinePart]:
    """Yield each when it ends: after minutes without a precompiled header cache, seconds with it."""
    strategies = list(_list_strategies(toolchain))
    layers = probe_isolation(isolation)

    def attempt(strategy: _Strategy) -> MachinePart:
        builder = Builder(
            cache=cache or default_cache_folder(), toolchain=toolchain, wrap=layers.wrap,
            readable=interpreter_folders(), environment=clean_environment, fast=strategy.name == "fast",
            emulate=Emulation(target=find_gpu_model(DEFAULT_TARGET)) if strategy.name == EMULATED else None,
        )  # fmt: skip
        return _try(builder, strategy)

    with ThreadPoolExecutor(count_cores()) as pool:
        for trial in as_completed([pool.submit(attempt, strategy) for strategy in strategies]):
            yield trial.result()


def _list_strategies(toolchain: Toolchain) -> Iterator[_Strategy]:
    if toolchain.compiler_version is None:
        return
    if toolchain.can_build_cuda:
        yield _Strategy(language=GPU_LANGUAGE, name="fast")
        yield _Strategy(language=GPU_LANGUAGE, name="plain")
    yield _Strategy(language=GPU_LANGUAGE, name="emulated")
    yield _Strategy(language=CPU_LANGUAGE, name="fast")
    yield _Strategy(language=CPU_LANGUAGE, name="plain")


def _try(builder: Builder, strategy: _Strategy) -> MachinePart:
    part = f"build {strategy.language} {strategy.name}"
    try:
        result = builder.build(strategy.request)
        if result.extension is None or result.strategy != strategy.name:
            # The cached result may predate a change of the machine.
            fresh = f"// {time.time_ns()}\n"
            result = builder.build(replace(strategy.request, cpp_sources=(fresh + strategy.request.cpp_sources[0],)))
    except BuildToolError as error:
        return MachinePart(part=part, present=False, found=str(error), without_it=str(error))
    works = result.extension is not None and result.strategy == strategy.name
    found = _describe_time(result) if works else _describe_failure(result)
    return MachinePart(part=part, present=works, found=found, without_it=found)


def _describe_time(result: BuildResult) -> str:
    return "cached" if result.status == "cached" else f"{result.duration_s:.0f} s"


def _describe_failure(result: BuildResult) -> str:
    error = name_first_error(result.log) if result.extension is None else ""
    return f"{result.reason} {error}".strip()


_PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(100)]

def get_init_inputs():
    return []
"""


def try_language(rules: LanguageRules) -> tuple[str, str]:
    """Return the version with the working parts, and the failing parts ("" without any)."""
    device = find_devices("auto", rules.name)[0]
    missing = rules.find_missing(device == EMULATED)
    if missing is not None:
        return "none", missing
    evaluation = _evaluate(rules, device)
    if evaluation.outcome is not Outcome.CORRECT:
        return f"{rules.version}", f"a small kernel ends as {evaluation.outcome}: {evaluation.message[:300]}"
    works = "interprets, and compiles for the emulated GPU" if device == EMULATED else f"runs on {device}"
    return f"{rules.version}, {works}", ""


def _evaluate(rules: LanguageRules, device: str) -> Evaluation:
    settings = LocalSettings(device=device, fidelity="correctness", measure_noise=False, attribute_work=False)
    setup = Setup(settings=settings, toolchain=probe_toolchain(None), isolation=probe_isolation())
    problem = Problem(name="language_trial", suite="doctor", source=_PROBLEM)
    candidate = Candidate(source=rules.trial, language=rules.name, rule="file")
    task = make_task(problem, candidate, Origin(run="doctor", model="-"), language=rules.name)
    evaluators = DeviceEvaluators(setup, open_device(device), checks=device == EMULATED)
    try:
        return evaluators.evaluate(task.on_device(device))
    finally:
        evaluators.close()
