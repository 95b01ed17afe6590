"""RL frameworks with a scripted policy against `harness serve` on the emulated device: 20 steps each.

`make rl-packages` installs the frameworks into environments of their own.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
KERNEL = '''Step STEP:
```python
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void add_kernel(const float* a, const float* b, float* out, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = a[i] + b[i];
}
torch::Tensor add(torch::Tensor a, torch::Tensor b) {
  auto out = torch::empty_like(a);
  int count = a.numel();
  add_kernel<<<(count + 127) / 128, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), count);
  return out;
}
"""
extension = load_inline("add", "torch::Tensor add(torch::Tensor a, torch::Tensor b);", source, functions=["add"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.add(a.contiguous(), b.contiguous())
```
'''
POLICY = {
    "I do not know.": 0.0,
    KERNEL.replace("a[i] + b[i]", "a[i] - b[i]"): 0.0,
    KERNEL.replace("a[i] + b[i];", "a[i] + ;"): 0.0,
    KERNEL: 1.0,
}
STEPS = 20
ANSWERS = [list(POLICY)[step % 4].replace("STEP", str(step)) for step in range(STEPS)]
REWARDS = [list(POLICY.values())[step % 4] for step in range(STEPS)]

READ = "import json, sys\nanswers, problems = json.load(open(sys.argv[1])), sys.argv[2]\n"
VERIFIERS = f"""{READ}
import asyncio
import verifiers.v1 as vf
from harness.service.adapters.verifiers import KernelTaskset, KernelTasksetConfig

(task,) = KernelTaskset(KernelTasksetConfig(suite="tiny", language="cuda", problems_dir=problems)).load()
rewards = []
for step, answer in enumerate(answers):
    record = vf.TraceTask(type="KernelTask", data=task.data)
    empty = {{"rewards": {{}}, "metrics": {{}}, "nodes": []}}
    trace = vf.Trace.model_construct(id=f"t{{step}}", task=record, root_reply=answer, **empty)
    asyncio.run(task.score(trace))
    rewards.append(sum(reward.value for reward in trace.rewards.values()))
print(json.dumps(rewards))
"""
SKYRL = f"""{READ}
import skyrl_gym
from skyrl_gym.envs import register

register(id="kernel", entry_point="harness.service.adapters.skyrl:KernelEnv")
evaluation = {{"problem": "add", "suite": "tiny", "language": "cuda"}}
env = skyrl_gym.make("kernel", env_config={{}}, extras={{"evaluation": evaluation, "max_turns": len(answers)}})
env.init([{{"role": "user", "content": "Write a kernel."}}])
steps = [env.step(answer) for answer in answers]
assert [step["done"] for step in steps] == [False] * (len(answers) - 1) + [True]
print(json.dumps([step["reward"] for step in steps]))
"""
OPENENV = f"""{READ}
import os
from openenv.core import GenericEnvClient

rewards = []
with GenericEnvClient(os.environ["HARNESS_SERVICE_URL"], message_timeout_s=600).sync() as env:
    for answer in answers:
        assert "return a + b" in env.reset(problem="tiny/add").observation["prompt"]
        rewards.append(env.step({{"completion": answer}}).reward)
print(json.dumps(rewards))
"""
VERL = f"""{READ}
import numpy as np, torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.workers.reward_manager import NaiveRewardManager


class Characters:
    def decode(self, tokens, skip_special_tokens):
        return "".join(chr(token) for token in tokens)


function = {{"path": "harness/service/adapters/verl.py", "name": "compute_score"}}
config = OmegaConf.create({{"reward": {{"custom_reward_function": function}}}})
manager = NaiveRewardManager(Characters(), 0, compute_score=get_custom_reward_fn(config))
evaluation = {{"problem": "add", "suite": "tiny", "language": "cuda"}}
row = {{"data_source": "kernels", "reward_model": {{"ground_truth": ""}}, "extra_info": {{"evaluation": evaluation}}}}
rewards = []
for answer in answers:
    tokens = torch.tensor([[ord(character) for character in answer]])
    tensors = {{"prompts": tokens[:, :1], "responses": tokens, "attention_mask": torch.ones(1, 1 + tokens.shape[1])}}
    batch = DataProto.from_dict(
        {{name: tensor.long() for name, tensor in tensors.items()}},
        {{name: np.array([value], dtype=object) for name, value in row.items()}},
    )
    rewards.append(manager(batch).sum().item())
print(json.dumps(rewards))
"""


@pytest.fixture
def run_loop(start_harness, tiny_suite, tmp_path, build_cache, without_nvcc, needs_compiler):
    """Runs a loop of a framework, with its Python, against a service of its own; the rewards that it got."""

    def run(environment, loop):
        python = VENV / environment / "bin" / "python"
        if not python.exists():
            pytest.skip("needs RL frameworks in an environment of their own: make rl-packages")
        where = ["--problems-dir", tiny_suite.parent, "--queue-dir", tmp_path / "queue", "--cache-dir", build_cache]
        server = start_harness(["serve", "--port", "0", "--device", "emulated", *where], env=without_nvcc)
        found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stderr)))
        answers = tmp_path / "answers.json"
        answers.write_text(json.dumps(ANSWERS))
        variables = {"PYTHONPATH": str(ROOT), "HARNESS_SERVICE_URL": found[0], "HOME": str(tmp_path)}
        finished = subprocess.run(
            [python, "-c", loop, answers, tiny_suite.parent], env=os.environ | variables, cwd=ROOT,
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr[-3000:]
        return json.loads(finished.stdout.splitlines()[-1])

    return run


@pytest.mark.parametrize(
    ("environment", "loop"),
    [("rl", VERIFIERS), ("rl", SKYRL), ("rl-verl", VERL), ("rl-openenv", OPENENV)],
    ids=["verifiers", "skyrl", "verl", "openenv"],
)
def test_twenty_steps_of_a_scripted_policy_get_their_rewards(run_loop, environment, loop):
    assert run_loop(environment, loop) == REWARDS
