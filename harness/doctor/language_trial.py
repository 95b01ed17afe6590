"""Evaluates a small program, to test whether a language works on this machine."""

from __future__ import annotations

from harness.builder import probe_toolchain
from harness.domain import EMULATED, Candidate, Evaluation, Outcome, Problem
from harness.executors.device_evaluators import DeviceEvaluators
from harness.executors.settings import LocalSettings, Setup
from harness.executors.tasks import Origin, make_task
from harness.languages import LanguageRules
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
