"""`harness tools serve` with a real MCP client over stdio, and real evaluations on the CPU."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from typing import get_args

import pytest

from harness.domain import Language

if importlib.util.find_spec("mcp") is None:
    pytest.skip("the tools need the extra mcp", allow_module_level=True)

HEAD = "import torch\nfrom torch import nn\nclass ModelNew(nn.Module):\n    def forward(self, a, b):\n        return "
RIGHT, WRONG = f"{HEAD}a + b\n", f"{HEAD}a - b\n"
LANGUAGES = " or ".join(", ".join(map(repr, get_args(Language))).rsplit(", ", 1))
ADD = {"problem": "add", "suite": "tiny", "language": "cpp"}
BEYOND = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i <= n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(a.numel() // 256 + 1,)](a, b, out, a.numel(), BLOCK=256)
        return out
"""


@pytest.fixture
def ask(tmp_path, tiny_suite, clean_environment_for):
    """Starts a server, calls its tools one after the other, and returns their answers."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    def run(*calls, options=(), env=None):
        command = ["-m", "harness", "tools", "serve", "--no-time", "--problems-dir", tiny_suite.parent, *options]
        server = StdioServerParameters(
            command=sys.executable,
            args=[str(part) for part in command],
            cwd=tmp_path,
            env=clean_environment_for(**(env or {})),
        )

        async def call_all():
            async with Client(server) as client:
                return [await client.call_tool(name, arguments) for name, arguments in calls]

        return asyncio.run(call_all())

    return run


@pytest.mark.slow
def test_an_agent_reads_a_problem_repairs_its_program_and_submits_it(ask, run_harness):
    listed, problem, wrong, right, submitted = ask(
        ("list_problems", {"suite": "tiny"}),
        ("get_problem", {"problem": "add", "suite": "tiny"}),
        ("evaluate", ADD | {"source": WRONG}),
        ("evaluate", ADD | {"source": RIGHT}),
        ("submit", ADD | {"source": f"Here it is:\n\n```python\n{RIGHT}```\n"}),
        options=("--run", "mine", "--model", "my-agent"),
    )
    assert [one["name"] for one in listed.structured_content["problems"]] == ["add"]
    assert "return a + b" in problem.structured_content["source"]
    assert problem.structured_content["workloads"][0]["inputs"] == [["float32", [64, 65]], ["float32", [64, 65]]]
    assert wrong.structured_content["outcome"] == "wrong_value"
    assert "expected" in wrong.content[0].text and "## Result: wrong_value" in wrong.content[0].text
    assert [one.structured_content["id"] for one in (wrong, right, submitted)] == [None, None, 1]
    assert submitted.structured_content["outcome"] == "correct"

    stored = [json.loads(line) for line in run_harness(["results", "--json"]).stdout.splitlines()]
    assert [(one["run"], one["model"], one["problem"], one["outcome"]) for one in stored] == [
        ("mine", "my-agent", "add", "correct")
    ]
    assert "my-agent" in run_harness(["leaderboard"]).stdout


@pytest.mark.slow
def test_bad_input_is_a_tool_error_and_the_server_continues(ask):
    bad = [
        (ADD | {"problem": "nope", "source": RIGHT}, "no problem 'nope' in suite 'tiny'; known: add"),
        (ADD | {"problem": "../tiny/add", "source": RIGHT}, "no name of a problem"),
        (ADD | {"source": " \n"}, "the source is empty"),
        (ADD | {"source": "x" * 10_000_000}, "the source has 10,000,000 bytes; the limit is 1,048,576"),
        (ADD | {"language": "rust", "source": RIGHT}, f"Input should be {LANGUAGES}"),
        (ADD | {"workload": "small", "source": RIGHT}, "add has no small workload"),
        (ADD | {"language": "cuda", "source": RIGHT}, "device cpu evaluates no cuda programs"),
    ]
    calls = [("evaluate", arguments) for arguments, _ in bad] + [("list_problems", {"suite": "tiny"})]
    *refused, listed = ask(*calls, options=("--device", "cpu"))
    assert [one.is_error for one in refused] == [True] * len(bad)
    for answer, (_, message) in zip(refused, bad, strict=True):
        assert message in answer.content[0].text
    assert not listed.is_error


@pytest.mark.parametrize(
    ("option", "value", "message"), [("--device", "tpu", "unknown device 'tpu'"), ("--run", "../x", "'../x'")]
)
def test_a_wrong_option_is_refused_at_the_start(call_harness, option, value, message):
    finished = call_harness(["tools", "serve", option, value])
    assert finished.returncode in (2, 3)
    assert message in finished.stderr
    assert finished.stdout == ""


@pytest.mark.slow
def test_a_spent_budget_refuses_evaluations_but_no_reading(ask):
    first, refused, read = ask(
        ("evaluate", ADD | {"source": WRONG}),
        ("submit", ADD | {"source": f"Here it is:\n\n```python\n{RIGHT}```\n"}),
        ("get_problem", {"problem": "add", "suite": "tiny"}),
        options=("--budget-evaluations", "1"),
    )
    assert first.structured_content["evaluations_left"] == 0
    assert refused.is_error and "the budget of 1 evaluations is spent" in refused.content[0].text
    assert not read.is_error


@pytest.mark.slow
def test_sanitize_names_an_access_beyond_the_end_with_its_kernel(ask):
    pytest.importorskip("triton", reason="the emulated device runs Triton kernels in Triton's own interpreter")
    (answer,) = ask(("sanitize", ADD | {"language": "triton", "source": BEYOND}))
    found = answer.structured_content
    assert (found["device"], found["outcome"]) == ("emulated", "runtime_error")
    assert [one["check"] for one in found["findings"]][:1] == ["out_of_bounds"]
    assert "in kernel add" in found["findings"][0]["evidence"]


@pytest.mark.slow
def test_output_of_a_problem_file_does_not_reach_the_protocol(tmp_path, tiny_suite, clean_environment_for):
    with (tiny_suite / "add.py").open("a") as file:
        file.write("\nimport os\nprint('noise')\nos.system('echo noise')\n")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "get_problem", "arguments": {"problem": "add", "suite": "tiny"}}
    server = subprocess.Popen(
        [sys.executable, "-m", "harness", "tools", "serve", "--problems-dir", tiny_suite.parent],
        cwd=tmp_path,
        env=clean_environment_for(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with server:
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        left, noise = server.communicate()
    assert [one["id"] for one in answers] == [1, 2]
    assert not answers[1]["result"].get("isError")
    assert left == ""
    assert noise.count("noise") >= 2
    assert server.returncode == 0


@pytest.mark.slow
def test_profile_without_a_gpu_is_an_error_of_the_tool(ask):
    (refused,) = ask(("profile", ADD | {"source": RIGHT}), options=("--device", "cpu"))
    assert refused.is_error and "profile needs an NVIDIA GPU" in refused.content[0].text
