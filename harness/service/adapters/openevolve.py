"""Adapter for OpenEvolve, as evaluator. Set HARNESS_PROBLEM, HARNESS_SUITE and HARNESS_SERVICE_URL."""

import os
from pathlib import Path
from typing import Any

from harness.domain import UsageError
from harness.domain.files import read_python
from harness.service.adapters.scoring import find_scorer
from harness.service.reward import score_verdict


def evaluate(program_path: str) -> Any:
    """`combined_score` is the reward; the verdict's message is an artifact for the next prompt."""
    from openevolve.evaluation_result import EvaluationResult

    problem = os.environ.get("HARNESS_PROBLEM")
    if not problem:
        raise UsageError("set HARNESS_PROBLEM to the problem's name")
    verdict = find_scorer().client.evaluate(
        candidate=read_python(Path(program_path)), problem=problem, suite=os.environ.get("HARNESS_SUITE", "core")
    )
    reward = score_verdict(verdict)
    metrics = {"combined_score": reward.value, **reward.metrics}
    return EvaluationResult(metrics=metrics, artifacts={"verdict": f"{reward.outcome}: {reward.message}"})
