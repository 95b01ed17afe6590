"""Task folders for Harbor, and the reward that their verifiers write."""

import json
import os
import subprocess
import tomllib

import pytest

from harness.service.adapters.harbor import main

RIGHT = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.add(a, b)
"""


@pytest.fixture
def exported(tiny_suite, tmp_path, call_harness):
    arguments = [
        "export", "--format", "harbor", "--suite", "tiny", "--language", "cpp", "--image", "registry.example/harness:1",
        "--problems-dir", tiny_suite.parent, tmp_path / "tasks",
    ]  # fmt: skip
    done = call_harness(arguments)
    assert done.returncode == 0, done.stderr
    return tmp_path / "tasks" / "tiny-add"


def test_a_task_has_the_files_that_harbor_reads(exported):
    files = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    assert files == {
        "task.toml", "instruction.md", "environment/Dockerfile", "environment/tiny/add.py",
        "environment/tiny/suite.toml", "tests/Dockerfile", "tests/tiny/add.py", "tests/tiny/suite.toml",
        "tests/test.sh",
    }  # fmt: skip
    task = tomllib.loads((exported / "task.toml").read_text())
    assert task["task"]["name"] == "kernel-harness/tiny-add"
    assert (task["verifier"]["environment_mode"], task["artifacts"]) == ("separate", ["/app/solution.py"])
    assert (task["environment"]["gpus"], task["metadata"]["device"]) == (0, "cpu")
    assert "FROM registry.example/harness:1" in (exported / "tests" / "Dockerfile").read_text()
    assert "return a + b" in (exported / "instruction.md").read_text()
    assert os.access(exported / "tests" / "test.sh", os.X_OK)
    assert subprocess.run(["bash", "-n", exported / "tests" / "test.sh"], check=False).returncode == 0


def test_requirement_of_custom_kernels_by_a_suite_is_kept(tiny_suite, exported, call_harness, tmp_path):
    (tiny_suite / "suite.toml").write_text("requires_kernel = true\n")
    call_harness(["export", "--format", "harbor", "--suite", "tiny", "--problems-dir", tiny_suite.parent, tmp_path])
    for folder in ("environment", "tests"):
        assert (tmp_path / "tiny-add" / folder / "tiny" / "suite.toml").read_text() == "requires_kernel = true\n"


def verify(exported, candidate):
    logs = exported.parent / "logs"
    problem = exported / "tests" / "tiny" / "add.py"
    arguments = ["--candidate", str(candidate), "--problem", str(problem), "--language", "cpp", "--output", str(logs)]
    code = main([*arguments, "--device", "cpu"])
    written = logs / "reward.json"
    return code, json.loads(written.read_text()) if written.exists() else None


def test_a_missing_solution_has_no_reward(exported, tmp_path):
    code, rewards = verify(exported, tmp_path / "solution.py")
    assert (code, rewards["reward"], rewards["built"]) == (0, 0.0, 0.0)


def test_a_fault_of_the_machine_writes_no_reward(exported, tmp_path, capsys):
    (tmp_path / "solution.py").write_text(RIGHT)
    (exported / "tests" / "tiny" / "add.py").write_text("raise OSError('no such problem')\n")
    code, rewards = verify(exported, tmp_path / "solution.py")
    assert (code, rewards) == (1, None)
    assert "no verdict" in capsys.readouterr().err


@pytest.mark.slow
def test_a_right_solution_gets_the_reward_of_its_verdict(exported, tmp_path):
    (tmp_path / "solution.py").write_text(RIGHT)
    code, rewards = verify(exported, tmp_path / "solution.py")
    assert (code, rewards["correct"]) == (0, 1.0)
    assert 0.0 < rewards["reward"] < 5.0
