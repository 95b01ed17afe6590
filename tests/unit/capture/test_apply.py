"""`harness apply`: kernels in the model, and those that are left out."""

import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

from harness.capture.apply import ApplyReport, find_kernels, write_applied
from harness.capture.trial_calls import load_text
from harness.cli.main import run_command
from harness.problems.discovery import find_suite
from harness.store.results import ResultStore

NET = """
import time

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        for _ in range(60):
            x = x * self.weight
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.slow, self.head = Slow(), nn.Linear(64, 64)

    def forward(self, x):
        return self.head(self.slow(x))

net = Net().eval()
with torch.no_grad():
    for step in range(50):
        net(torch.randn(512, 64))
"""
KERNEL = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.{name} = nn.Parameter(torch.ones(64))

    def forward(self, x):
        {forward}
"""
SLOWER = KERNEL.format(name="weight", forward="[x * self.weight for _ in range(180)]\n        return x * self.weight")
RANDOM = KERNEL.replace("torch.ones(64)", "torch.randn(64)")
FAST = RANDOM.format(name="weight", forward="return x * self.weight ** 60")


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """Holds what the tests have captured: each network once."""
    return tmp_path_factory.mktemp("captured")


@pytest.fixture
def apply(capture, captured, evaluation_of, capsys):
    """Capture the network, store a verified kernel, and apply it."""

    def run(kernel, script=NET, *options, backward=False):
        kept = captured / str(hash((script, backward)))
        if kept.exists():
            shutil.copytree(kept, ".", dirs_exist_ok=True)
        else:
            assert capture(script, "--module", "Slow", *(("--backward",) if backward else ()))[0] == 0
            shutil.copytree(".", kept)
        (problem,) = find_suite(Path("captured/net"))
        verdict = evaluation_of(
            speedup=3.0, problem="slow", suite="net", problem_digest=problem.digest, candidate_digest="a" * 16
        )
        with ResultStore.open(Path("results")) as store:
            store.record(verdict, kernel)
        code = run_command(["apply", "captured/net", "--script", "script.py", "--json", *options])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_a_kernel_that_pays_is_applied_and_measured(apply):
    code, record = apply(FAST)
    (kernel,) = record["kernels"]
    assert (code, kernel["reason"]) == (0, "")
    assert kernel["alone"] == 3.0
    assert kernel["in_model"]["low"] > 1
    assert record["modes"]["eager"]["gain"] > 1


def test_the_written_package_applies_kernels_without_harness(apply, monkeypatch):
    apply(FAST)
    folder = Path("captured/net")
    kernels, _ = find_kernels(folder, Path("results"))
    write_applied(folder, ApplyReport(model="Net", kernels=kernels))  # whether they paid on this machine or not
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "applied", raising=False)
    importlib.invalidate_caches()
    text = (folder / "applied" / "__init__.py").read_text()
    assert "harness." not in text.replace("`harness apply`", "")
    net = load_text("import torch\nfrom torch import nn\n" + NET)["net"]
    x = torch.randn(512, 64)
    before, names = net(x), list(net.state_dict())
    importlib.import_module("applied").apply(net)
    with torch.no_grad():
        torch.testing.assert_close(net(x), before)
    assert "forward" in vars(net.slow)
    assert list(net.state_dict()) == names


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (KERNEL.format(name="weight", forward="return x * self.weight ** 60 + 0.01"), "wrong in the model: off by"),
        (KERNEL.format(name="weight", forward="raise ValueError('no such shape')"), "ValueError: no such shape"),
        (KERNEL.format(name="scale", forward="return x * self.scale ** 60"), "its parameters are ['scale']"),
        (
            KERNEL.format(
                name="weight", forward="[x * self.weight for _ in range(180)]\n        return x * self.weight"
            ),
            "slower in the model",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:slow failed")
def test_a_kernel_that_fails_or_does_not_pay_is_left_out(apply, kernel, reason):
    code, record = apply(kernel)
    assert code == 1
    assert reason in record["kernels"][0]["reason"]
    if "wrong" in reason or "ValueError" in reason:
        assert "with the inputs x (512, 64) torch.float32" in record["kernels"][0]["reason"]
    assert not record["modes"]


TRAINING = (
    NET[: NET.index("net =")]
    + """
torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), 1e-4)
while True:
    optimizer.zero_grad()
    net(torch.randn(512, 64)).pow(2).mean().backward()
    optimizer.step()
"""
)


@pytest.mark.parametrize(
    ("kernel", "backward", "reason"),
    [
        (FAST, True, ""),
        (FAST, False, "capture it with --backward"),
        (FAST.replace("weight ** 60", "weight.detach() ** 60"), True, "call 0 of the model: off by"),
    ],
)
def test_a_script_that_trains_is_compared_by_gradients_and_losses(apply, kernel, backward, reason):
    _, record = apply(kernel, TRAINING, backward=backward)
    assert reason in record["kernels"][0]["reason"]
    assert len(record["losses"]) == (0 if reason else 12)
    assert bool(record["modes"]) is not bool(reason)


@pytest.mark.slow
def test_a_compiled_model_is_measured_with_compiled_kernels(apply):
    _, record = apply(FAST, NET, "--modes", "compile,graph")
    assert record["modes"]["compile"]["before_us"] > 0
    assert record["modes"]["graph"] == "a CUDA graph needs a model on one GPU"


def test_calls_that_were_not_captured_use_the_module(apply):
    from harness.capture.runtime import make_dispatches

    apply(FAST)
    group = next(one for one in json.loads(Path("captured/net/capture.json").read_text())["groups"] if one["problem"])
    net = load_text("import torch\nfrom torch import nn\n" + NET)["net"]
    state = torch.get_rng_state()
    (dispatch,) = make_dispatches(net, group | {"backward": False}, Path("captured/net/applied/slow.py"))
    assert torch.equal(torch.get_rng_state(), state)
    with torch.no_grad():
        dispatch(torch.ones(7, 64)), dispatch(torch.ones(512, 64).half().float())
    assert dispatch.used == 1
    dispatch(torch.ones(512, 64))  # needs gradients, which the kernel was not verified for
    assert dispatch.used == 1


def test_a_model_is_applied_to_in_python(apply):
    import harness

    apply(FAST)
    net = load_text("import torch\nfrom torch import nn\n" + NET)["net"]
    calls = [{"x": torch.randn(512, 64)}, (torch.randn(512, 64),), torch.randn(512, 64)]
    report = harness.apply(torch.compile(net), "captured/net", calls)
    assert [(one.problem, one.reason) for one in report.kernels] == [("slow", "")]
    assert "forward" in vars(net.slow)
    assert Path("captured/net/applied/__init__.py").exists()
    with pytest.raises(RuntimeError):
        harness.apply(net, "captured/net", [torch.randn(512, 63)])
    assert Path("captured/net/applied/__init__.py").exists()


def test_without_a_verified_kernel_nothing_is_applied(capture, capsys):
    capture(NET, "--module", "Slow")
    assert run_command(["apply", "captured/net", "--script", "script.py"]) == 1
    assert "no correct kernel on this kind of device: slow" in capsys.readouterr().out


def test_a_folder_that_was_not_captured_is_wrong_usage(tmp_path, capsys):
    assert run_command(["apply", str(tmp_path), "--script", "script.py"]) == 2
    assert "make it with harness capture" in capsys.readouterr().err
