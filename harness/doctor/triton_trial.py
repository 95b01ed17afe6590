"""Evaluates a small Triton program, to see whether Triton works on this machine."""

from __future__ import annotations

from importlib.metadata import version

from harness.builder import probe_toolchain
from harness.domain import EMULATED, Candidate, Evaluation, Outcome, Problem
from harness.executors.device_evaluators import DeviceEvaluators
from harness.executors.settings import LocalSettings, Setup
from harness.executors.tasks import Origin, make_task
from harness.languages import LANGUAGES
from harness.languages.devices import find_devices
from harness.sandbox.devices import open_device
from harness.sandbox.policy import probe_isolation

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
_CANDIDATE = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def increment(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size) + 1, mask=at < size)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        increment[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""


def try_triton() -> tuple[str, str]:
    """Triton's version with what works, and what does not ("": everything)."""
    device = find_devices("auto", "triton")[0]
    missing = LANGUAGES["triton"].find_missing(device == EMULATED)
    if missing is not None:
        return "none", missing
    found, evaluation = version("triton"), _evaluate(device)
    if evaluation.outcome is not Outcome.CORRECT:
        return found, f"a small kernel ends as {evaluation.outcome}: {evaluation.message[:300]}"
    works = "interprets, and compiles for the emulated GPU" if device == EMULATED else f"runs on {device}"
    return f"{found}, {works}", ""


def _evaluate(device: str) -> Evaluation:
    settings = LocalSettings(device=device, fidelity="correctness", measure_noise=False, attribute_work=False)
    setup = Setup(settings=settings, toolchain=probe_toolchain(None), isolation=probe_isolation())
    problem = Problem(name="triton_trial", suite="doctor", source=_PROBLEM)
    candidate = Candidate(source=_CANDIDATE, language="triton", rule="file")
    task = make_task(problem, candidate, Origin(run="doctor", model="-"), language="triton")
    evaluators = DeviceEvaluators(setup, open_device(device), checks=device == EMULATED)
    try:
        return evaluators.evaluate(task.on_device(device))
    finally:
        evaluators.close()
