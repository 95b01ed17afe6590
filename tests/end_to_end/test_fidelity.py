"""`--fidelity`: how much of the time of a candidate is measured."""

import json

import pytest

HEAD = "import torch\nfrom torch import nn\n"
SLOWER = f"""{HEAD}class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(20):
            torch.sin(a)
        return a + b
"""
WRONG = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a - b\n"


@pytest.mark.slow
def test_higher_fidelity_adds_pairs_to_correct_candidates_only(tiny_suite, write_run, call_harness):
    write_run("r", [SLOWER, WRONG])
    pairs, ids = {}, {}
    for fidelity in ("correctness", "quick", "full"):
        done = call_harness(
            ["evaluate", "r", "--problems-dir", tiny_suite.parent, "--fidelity", fidelity, "--jobs", "1", "--json"]
        )
        wrong, correct = sorted(
            (json.loads(line) for line in done.stdout.splitlines()), key=lambda one: one["outcome"]
        )[::-1]
        assert (correct["outcome"], wrong["outcome"]) == ("correct", "wrong_value"), done.stderr
        assert correct["environment"].get("fidelity", "full") == fidelity
        pairs[fidelity] = len(correct["timing"]["blocks"]) if correct["timing"] else 0
        ids[fidelity] = wrong["id"]
    assert pairs["correctness"] == 0
    assert 10 <= pairs["quick"] <= 40
    assert pairs["full"] >= 20
    assert len(set(ids.values())) == 1
    again = call_harness(["evaluate", "r", "--problems-dir", tiny_suite.parent, "--fidelity", "quick"])
    assert "2 already evaluated" in again.stdout
