"""Exports problems as Harbor task folders, and evaluates inside their verifiers.

The agent leaves `/app/solution.py`. The verifier evaluates that file in a separate container and writes the reward.
Both containers are built from this project's image.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.api import Evaluator
from harness.domain import HarnessError, Language, Problem
from harness.languages import LANGUAGES
from harness.report.export.json_records import evaluation_record
from harness.service.reward import Reward, score_verdict
from harness.service.tools.problem_facts import render_task
from harness.store.results import StoredEvaluation

SOLUTION, LOGS = "/app/solution.py", "/logs/verifier"
AGENT_S, VERIFIER_S, BUILD_S = 7200.0, 1800.0, 3600.0
TEMPLATES = Path(__file__).parent / "harbor_task"


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """`image` is this project's, with its compilers."""

    problem: Problem
    language: Language
    device: str
    image: str

    @property
    def name(self) -> str:
        return f"{self.problem.suite}-{self.problem.name}".replace("_", "-").lower()

    def list_files(self) -> Mapping[str, str]:
        problem, image = self.problem, self.image
        facts = {
            "name": f"kernel-harness/{self.name}", "summary": problem.summary, "keywords": list(problem.tags),
            "suite": problem.suite, "problem": problem.name, "digest": problem.digest, "language": self.language,
            "device": self.device, "solution": SOLUTION, "gpus": int(self.device.startswith("cuda")),
            "agent_s": AGENT_S, "verifier_s": VERIFIER_S, "build_s": BUILD_S,
        }  # fmt: skip
        # TOML's strings, numbers and lists of strings are written as in JSON.
        path = f"{problem.suite}/{problem.name}.py"
        told = {"solution": SOLUTION, "problem": path, "language": self.language, "device": self.device}
        suite = f"requires_kernel = {json.dumps(problem.requires_kernel)}\n"
        return {
            "task.toml": _fill("task.toml", **{name: json.dumps(value) for name, value in facts.items()}),
            "instruction.md": _fill("instruction.md", **told) + render_task(problem, self.language),
            "environment/Dockerfile": _fill("agent.Dockerfile", image=image, suite=problem.suite),
            f"environment/{path}": problem.source,
            f"environment/{problem.suite}/suite.toml": suite,
            "tests/Dockerfile": _fill("verifier.Dockerfile", image=image),
            f"tests/{path}": problem.source,
            f"tests/{problem.suite}/suite.toml": suite,
            "tests/test.sh": _fill("test.sh", logs=LOGS, **told),
        }


def _fill(template: str, **facts: object) -> str:
    return (TEMPLATES / template).read_text(encoding="utf-8").format(**facts)


def export_task(task: HarborTask, target: Path) -> Path:
    """Overwrites an earlier export."""
    folder = target / task.name
    for name, text in task.list_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "tests" / "test.sh").chmod(0o755)
    return folder


def score_file(candidate: Path, problem: Path, language: Language, device: str) -> Reward:
    """Raises NoVerdict for faults of the harness or its machine, such as a missing GPU."""
    if not candidate.is_file():
        unbuilt = dict.fromkeys(("built", "loaded", "correct", "suspect"), 0.0)
        return Reward(value=0.0, metrics=unbuilt, outcome="no_code", message=f"the agent left no {candidate}")
    with Evaluator(device=device) as evaluator:
        evaluation = evaluator.evaluate(candidate, problem, language=language)
    return score_verdict(evaluation_record(StoredEvaluation(id=0, evaluation=evaluation)))


def write_reward(reward: Reward, folder: Path) -> None:
    """`reward.json` has numbers only, as Harbor requires."""
    folder.mkdir(parents=True, exist_ok=True)
    explained: dict[str, Any] = {"outcome": reward.outcome, "message": reward.message}
    (folder / "verdict.json").write_text(json.dumps(explained, indent=2) + "\n", encoding="utf-8")
    (folder / "reward.json").write_text(json.dumps({"reward": reward.value, **reward.metrics}) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return exit code 1, and write no reward, without a verdict."""
    parser = argparse.ArgumentParser(prog="python -m harness.service.adapters.harbor")
    parser.add_argument("--candidate", type=Path, required=True)
    parser.add_argument("--problem", type=Path, required=True)
    parser.add_argument("--language", choices=sorted(LANGUAGES), required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    try:
        reward = score_file(chosen.candidate, chosen.problem, chosen.language, chosen.device)
    except HarnessError as error:
        print(f"no verdict: {error}", file=sys.stderr)
        return 1
    write_reward(reward, chosen.output)
    print(f"{reward.outcome}: reward {reward.value:g} {reward.message}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
