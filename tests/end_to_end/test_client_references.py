"""Problem files of a service's clients: what they can reach, and what becomes of the others."""

import json
import os
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest
from shared_bench import TINY_PROBLEM

from harness.domain import Candidate
from harness.executors.executor import Origin, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.problems.discovery import parse_problem
from harness.sandbox.policy import explain_evaluator_failure

HEAD = "import torch\nfrom torch import nn\n"
GOOD = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
# Reports in its error what it found and did.
SPY = (
    TINY_PROBLEM
    + """
import json, os, socket
from pathlib import Path
CACHE = Path(os.environ["XDG_CACHE_HOME"]) / "harness"
SEEN = [str(path) for path in CACHE.rglob("poison*")]

def attempt(action):
    try:
        return str(action())
    except Exception as error:
        return type(error).__name__

FOUND = {
    "seen": SEEN,
    "read": [attempt(Path(path).read_text) for path in PATHS],
    "connect": attempt(lambda: socket.create_connection(("127.0.0.1", PORT), timeout=1)),
    "poison": [attempt(lambda: (folder / "poison.so").write_text("x")) for folder in (CACHE, Path("KITS"))],
}
raise RuntimeError("found " + json.dumps(FOUND))
"""
)
FATAL = {
    "exits": "import ctypes; ctypes.CDLL(None)._exit(0)",
    "kills": "import os; os.kill(os.getppid(), 9); os.kill(os.getpid(), 9)",
    "forges": """import os
for number in range(3, 40):
    try: os.write(number, b"\\0\\0\\0\\x09" + b"forged!!!")
    except OSError: pass""",
    "hangs": """import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
ctypes.CDLL(None).sleep(3600)""",
}


def make_client_task(owner, reference=TINY_PROBLEM, source=GOOD):
    problem = parse_problem(reference, Path("reference.py"), "submitted", executes=False)
    candidate = Candidate(source=source, language="cpp", rule="file")
    task = make_task(problem, candidate, Origin(run="service", model="service"), language="cpp")
    return replace(task, owner=owner)


@pytest.fixture(scope="module")
def executor(tmp_path_factory):
    if why := explain_evaluator_failure():
        pytest.skip(f"needs user namespaces: {why}")
    settings = LocalSettings(
        device="cpu", cache=tmp_path_factory.mktemp("cache"), build_timeout_s=10.0, reference_timeout_s=4.0,
        fidelity="correctness",
    )  # fmt: skip
    with LocalExecutor(settings) as executor:
        yield executor


def evaluate(executor, *args):
    return executor.submit(make_client_task(*args)).result()


@pytest.mark.slow
def test_reference_is_isolated_from_service_and_other_clients(executor, tmp_path):
    (tmp_path / "tokens.txt").write_text("alice SECRET")
    kits = executor._setup().settings.cache / "kits"
    kits.mkdir(exist_ok=True)
    environment = f"/proc/{os.getpid()}/environ"
    paths = [tmp_path / "tokens.txt", Path(__file__), Path.home() / ".bashrc", "/etc/shadow", environment]
    spy = SPY.replace("PATHS", repr(list(map(str, paths)))).replace("PORT", "1").replace("KITS", str(kits))
    for owner in ("mallory", "alice"):
        found = evaluate(executor, owner, spy)
        assert found.outcome == "problem_error"
        report = json.loads(found.message.partition("found ")[2])
        assert report["seen"] == []
        assert report["read"] == ["FileNotFoundError"] * 5
        assert report["connect"] == "PermissionError"
        assert report["poison"] in (["1", "OSError"], ["FileNotFoundError", "OSError"])
    assert list(kits.iterdir()) == []
    assert evaluate(executor, "alice").outcome == "correct"


@pytest.mark.slow
@pytest.mark.parametrize("act", FATAL)
def test_ending_or_blocking_reference_is_a_problem_error_and_the_service_continues(executor, act):
    body = indent(f"{FATAL[act]}\nreturn a + b", " " * 8).strip()
    found = evaluate(executor, "mallory", TINY_PROBLEM.replace("return a + b", body))
    assert found.outcome == "problem_error"
    assert evaluate(executor, "alice").outcome == "correct"
    assert executor.status().failure == ""


# Plain C++ without torch's headers builds in a second.
EXTENSION = f"""{HEAD}from torch.utils.cpp_extension import load_inline
load_inline("plain", cpp_sources='extern "C" int f() {{ return NUMBER; }}', no_implicit_headers=True,
            is_python_module=False)
{GOOD.removeprefix(HEAD)}"""


@pytest.mark.slow
def test_candidates_of_a_client_that_wait_are_built_ahead_in_its_sandbox(executor):
    sources = [EXTENSION.replace("NUMBER", str(number)) for number in range(14)]
    futures = [executor.submit(make_client_task("alice", source=source)) for source in sources]
    found = [future.result() for future in futures]
    assert {one.outcome for one in found} == {"correct"}
    assert (found[0].build.cached, found[-1].build.cached) == (False, True)
    assert not list(executor._setup().settings.cache.glob("??/*"))
