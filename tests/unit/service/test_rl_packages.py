"""Adapters with the real packages, in an environment of their own: verifiers needs another openai than the harness.

`make rl-packages` installs them into `.venv/rl`, and verifiers v0 into `.venv/rl-v0`.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON, PYTHON_V0, PYTHON_OPENENV = (ROOT / ".venv" / name / "bin" / "python" for name in ("rl", "rl-v0", "rl-openenv"))
pytestmark = pytest.mark.slow
ANSWER = """
ANSWER = '''Here:
```python
# SCRIPT
import torch
class ModelNew(torch.nn.Module):
    def forward(self):
        pass
```
'''
"""

VERIFIERS = """
import asyncio, json, sys
import verifiers.v1 as vf
from harness.service.adapters.verifiers import KernelTaskConfig, KernelTaskset, KernelTasksetConfig

taskset = KernelTaskset(KernelTasksetConfig(suite="tiny", language="cpp", problems_dir=PROBLEMS))
(task,) = list(taskset)
agent = vf.AgentConfig.model_construct()
record = vf.TraceTask(type="KernelTask", data=task.data)
trace = vf.Trace.model_construct(id="t", task=record, root_reply=ANSWER, rewards={}, metrics={}, nodes=[])
asyncio.run(task.score(trace))
rewards = {name: reward.value for name, reward in trace.rewards.items()}
found = {"prompt": task.data.prompt, "rewards": rewards, "metrics": trace.metrics, "torch": "torch" in sys.modules}
print(json.dumps(found))
"""

VERIFIERS_FAULT = (
    VERIFIERS.partition("asyncio.run")[0]
    + """
try:
    asyncio.run(task.score(trace))
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""
)

VERIFIERS_V0 = """
import asyncio, json
from harness.service.adapters.verifiers_v0 import load_environment

environment = load_environment("tiny", "cpp", problems_dir=PROBLEMS)
row = environment.get_dataset()[0]
info = row["info"] if isinstance(row["info"], dict) else json.loads(row["info"])
state = {"prompt": row["prompt"], "completion": [{"role": "assistant", "content": ANSWER}], "info": info}
try:
    asyncio.run(environment.rubric.score_rollout(state))
    print(json.dumps([state["reward"], state["metrics"]]))
except Exception as error:
    print(json.dumps(type(error).__name__))
"""

SKYRL = """
import json
from skyrl_gym.envs.base_text_env import BaseTextEnv
from harness.service.adapters.skyrl import KernelEnv

extras = {"evaluation": {"problem": "add", "suite": "tiny"}, "max_turns": 2}
env = KernelEnv({}, extras)
assert isinstance(env, BaseTextEnv)
prompt, _ = env.init([{"role": "user", "content": "go"}])
print(json.dumps([env.step(ANSWER), env.step(ANSWER), env.get_metrics()]))
"""

OPENENV = """
import json, os
from openenv.core import GenericEnvClient

with GenericEnvClient(base_url=os.environ["HARNESS_SERVICE_URL"]).sync() as env:
    start = env.reset(problem="add", suite="tiny", language="cpp", episode_id="e1")
    try:
        end = env.step({"completion": ANSWER})
        found = [start.done, end.observation["outcome"], end.reward, end.done, env.state()["step_count"]]
    except RuntimeError as error:
        found = str(error)
print(json.dumps([start.observation["prompt"], found]))
"""

FEW_FAILURES = """
import harness.client
harness.client.Client.__init__.__kwdefaults__["max_failures"] = 1
"""

OPENEVOLVE = """
import asyncio, json, pathlib
from openevolve.config import EvaluatorConfig
from openevolve.evaluator import Evaluator
import harness.service.adapters.openevolve as adapter

program = "# SCRIPT\\nx = 1\\n"
evaluator = Evaluator(EvaluatorConfig(cascade_evaluation=False, max_retries=0), adapter.__file__)
metrics = asyncio.run(evaluator.evaluate_program(program, "one"))
print(json.dumps([metrics, evaluator.get_pending_artifacts("one")]))
"""


@pytest.fixture
def run_script(server, tiny_suite, tmp_path):
    """Runs a script against the service, with the scripted outcome in place of SCRIPT; what it printed."""

    def run(script, outcome="correct 2.0", python=PYTHON):
        if not python.exists():
            pytest.skip("needs RL frameworks in an environment of their own: make rl-packages")
        code = (ANSWER + script).replace("SCRIPT", outcome).replace("PROBLEMS", repr(str(tiny_suite.parent)))
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "HARNESS_SERVICE_URL": server.url, "HARNESS_PROBLEM": "add",
            "HARNESS_SUITE": "tiny", "HOME": str(tmp_path),
        }  # fmt: skip
        finished = subprocess.run(
            [python, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
        assert finished.returncode == 0, finished.stderr[-3000:]
        return json.loads(finished.stdout.splitlines()[-1])

    return run


def test_verifiers_scores_a_trace_with_one_evaluation(run_script, server):
    found = run_script(VERIFIERS)
    assert found["rewards"] == {"kernel_speedup": pytest.approx(1.9)}
    assert (found["metrics"]["correct"], found["metrics"]["speedup"]) == (1.0, 2.0)
    assert "return a + b" in found["prompt"]
    assert not found["torch"]
    assert len(server.executor.evaluated) == 1


def test_verifiers_raises_for_a_fault_of_the_service(run_script):
    name, message = run_script(FEW_FAILURES + VERIFIERS_FAULT, "not_run")
    assert name == "TaskError"  # which marks the trace as failed
    assert "no verdict" in message


def test_verifiers_v0_scores_a_rollout(run_script):
    value, metrics = run_script(VERIFIERS_V0, python=PYTHON_V0)
    assert (value, metrics["speedup"], metrics["correct"]) == (pytest.approx(1.9), 2.0, 1.0)


def test_verifiers_v0_raises_for_a_fault_of_the_service(run_script):
    assert run_script(FEW_FAILURES + VERIFIERS_V0, "not_run", PYTHON_V0) == "NoVerdict"


def test_skyrl_rewards_each_turn_and_shows_the_verdict(run_script):
    first, last, metrics = run_script(SKYRL, "wrong_value")
    assert (first["reward"], first["done"], last["done"]) == (0.0, False, True)
    assert "wrong_value" in first["observations"][0]["content"]
    assert last["observations"] == []
    assert metrics["loaded"] == 1.0


def test_skyrl_raises_for_a_fault_of_the_service(run_script):
    fault = (
        SKYRL.partition("print(")[0]
        + """
try:
    env.step(ANSWER)
except Exception as error:
    print(json.dumps(type(error).__name__))
"""
    )
    assert run_script(FEW_FAILURES + fault, "not_run") == "NoVerdict"


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("correct 2.0", [False, "correct", pytest.approx(1.9), True, 1]),
        ("wrong_value", [False, "wrong_value", 0.0, True, 1]),
        ("not_run", "Server error: no verdict: not_run (code: EXECUTION_ERROR)"),
    ],
)
def test_openenv_plays_an_episode_and_raises_for_a_fault_of_the_service(run_script, outcome, expected):
    prompt, found = run_script(OPENENV, outcome, PYTHON_OPENENV)
    assert "return a + b" in prompt
    assert found == expected


def test_openenv_connects_with_the_token_in_the_address(run_script, open_service, tmp_path):
    server = open_service(tokens={"secret": "alice"}, folder=tmp_path / "other")
    script = OPENENV.replace('os.environ["HARNESS_SERVICE_URL"]', repr(server.url.replace("//", "//alice:secret@")))
    assert run_script(script, python=PYTHON_OPENENV)[1][1] == "correct"


def test_openevolve_gets_a_combined_score_and_the_verdict_as_an_artifact(run_script):
    metrics, artifacts = run_script(OPENEVOLVE)
    assert (metrics["combined_score"], metrics["correct"]) == (pytest.approx(1.9), 1.0)
    assert artifacts["verdict"].startswith("correct")


def test_openevolve_gets_no_score_for_a_fault_of_the_service(run_script):
    metrics, _ = run_script(FEW_FAILURES + OPENEVOLVE, "not_run")
    assert "combined_score" not in metrics
