"""Describes problems to an agent."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.domain import PROBLEM_SETTINGS, Language, Problem
from harness.generate.prompting import read_host_facts, render_prompt
from harness.pipeline.data_folders import find_folder
from harness.problems.discovery import find_suite
from harness.problems.watched_process import describe_inputs
from harness.report.explanations import SETTINGS
from harness.service.preparation import find_named_suite

PROMPT = "plain"


def list_suite(suite: str, problems_dir: Path | None) -> list[dict[str, Any]]:
    """Raises HarnessError."""
    found = find_suite(find_named_suite(suite, problems_dir))
    return [
        {"name": one.name, "summary": one.summary, "tags": one.tags, "workloads": [size.name for size in one.workloads]}
        for one in found
    ]


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Executes the problem's file. Raises HarnessError."""
    return {
        "name": problem.name,
        "suite": problem.suite,
        "source": problem.source,
        "workloads": [
            {
                "name": one.name,
                "sizes": dict(one.overrides),
                "inputs": describe_inputs(problem, one.name),  # dtype and shape
            }
            for one in problem.workloads
        ],
        "settings": _describe_settings(problem),
        "requires_kernel": problem.requires_kernel,
    }


def render_task(problem: Problem, language: Language) -> str:
    folder = find_folder("prompts", None)
    host = read_host_facts()
    prompt = render_prompt(
        problem, prompt=PROMPT, language=language, gpu=None, host=host, prompts_dir=folder, has_tools=True
    )
    return prompt.text


def _describe_settings(problem: Problem) -> dict[str, dict[str, Any]]:
    small = problem.workload("small")
    values: dict[str, Any] = {"SMALL": dict(small.overrides) if small else {}, "TOLERANCE": asdict(problem.tolerance)}
    values["INPUTS"] = {one.argument: one.describe() for one in problem.inputs}
    values["CASES"] = [asdict(case) for case in problem.cases]
    return {
        name: {
            "value": values[name] if name in values else getattr(problem, name.lower()),
            "meaning": SETTINGS[name].meaning,
        }
        for name in PROBLEM_SETTINGS
        if name != "RANGES"  # among the cases
    }
