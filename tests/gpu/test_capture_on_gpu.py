"""From the example decoder to its kernels in Triton and CUDA and back, in each mode of the model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.capture.apply import NO_GAIN
from harness.cli.main import run_command
from harness.domain.files import replacing

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples/model/decoder.py"
SIZES = ("--width", "2048", "--heads", "16", "--layers", "2", "--batch", "4", "--length", "1024", "--dtype", "bfloat16")
CLASSES = {"add_norm": "AddNorm", "masked_softmax": "MaskedSoftmax", "rotary": "Rotary", "swiglu": "SwiGLU"}
MODES = ("eager", "compile", "graph")
ENDINGS = {"triton": ".py", "cuda": "_cuda.py"}

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def captured(tmp_path_factory, build_cache):
    """Change into a folder with the captured decoder."""
    folder = tmp_path_factory.mktemp("decoder")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HARNESS_CACHE_DIR", str(build_cache))
        patch.setenv("HARNESS_ALLOW_LOAD", "1")
        patch.setenv("TORCH_EXTENSIONS_DIR", str(folder / "extensions"))
        chosen = [word for name in CLASSES.values() for word in ("--module", name)]
        capture = ["capture", str(SCRIPT), "--model", "net", "--calls", "9", *chosen, "--", *SIZES]
        assert run_command(capture) == 0
        yield folder


@pytest.fixture(scope="module", params=ENDINGS)
def applied(request, captured):
    """Evaluate the kernels in one language and apply them: exit codes by kernel, and the record."""
    results = f"results-{request.param}"
    files = {name: ROOT / f"examples/model/kernels/{name}{ENDINGS[request.param]}" for name in CLASSES}
    if request.param == "cuda":
        build_extensions(files.values())
    codes = {}
    for name, file in files.items():
        problem = f"captured/net/{name}.py"
        options = ("--problem", problem, "--fidelity", "quick", "--no-profile", "--results-dir", results)
        codes[name] = run_command(["evaluate", str(file), *options])
    modes = ("--modes", ",".join(MODES), "--results-dir", results)
    run_command(["apply", "captured/net", "--script", str(SCRIPT), *modes, "--", *SIZES])
    record = json.loads(Path("captured/net/applied.json").read_text())
    print(json.dumps(record, indent=1))
    return codes, record


def build_extensions(files):
    """Build those of all files at once, as the user's process would one after the other."""
    environment = os.environ | {"PATH": f"{os.environ['PATH']}:{Path(sys.executable).parent}"}
    builds = [subprocess.Popen([sys.executable, str(file)], env=environment) for file in files]
    assert [one.wait() for one in builds] == [0] * len(builds)


@pytest.mark.parametrize("name", CLASSES)
def test_kernels_of_the_decoder_are_correct_alone_and_in_the_model(applied, name):
    codes, record = applied
    assert codes[name] == 0
    (kernel,) = [one for one in record["kernels"] if one["problem"] == name]
    assert kernel["reason"] in ("", NO_GAIN)
    assert kernel["in_model"]["gain"] > 0.9
    if name in ("add_norm", "masked_softmax"):
        assert kernel["reason"] == ""


@pytest.mark.parametrize("mode", MODES)
def test_kernels_of_the_decoder_are_measured_in_each_mode(applied, mode):
    gain = applied[1]["modes"][mode]
    assert not isinstance(gain, str), gain
    if mode != "compile":
        assert gain["low"] > 1.2


def test_gain_of_the_decoder_is_as_predicted_and_tokens_are_equal(applied):
    record = applied[1]
    # shares are of the time in which the GPU works; of a small model the host limits the other modes
    assert record["modes"]["graph"]["gain"] == pytest.approx(record["predicted"], rel=0.2)
    assert record["tokens"] == record["asked_tokens"]


@pytest.mark.parametrize("gradients", [False, True])
def test_a_model_is_measured_in_each_mode_with_gradients_too(gradients):
    import torch
    from torch import nn

    from harness.capture.comparison import compare_models, expect, measure_modes
    from harness.capture.runtime import Dispatch

    class Kernel(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight, self.extension = weight, sys  # a module cannot be copied

        def forward(self, input):
            return input * self.weight

    model = nn.Sequential(nn.Linear(64, 64), nn.RMSNorm(64), nn.Linear(64, 64)).cuda()
    model[1].forward = lambda input: input * model[1].weight
    calls = [((torch.randn(32, 64, device="cuda"),), {}) for _ in range(3)]
    plan = {
        "problem": "scale", "paths": ["1"], "inputs": ["input"], "outputs": "0", "frozen": [],
        "arguments": "(1, {'input': 'Tensor float32'})", "shapes": [[[(32, 32), (64, 64)]]], "backward": True,
    }  # fmt: skip
    dispatches = [Dispatch(model[1], Kernel(model[1].weight), plan)]
    expected = expect(model, calls, gradients=gradients)
    assert compare_models(dispatches, expected) == ""
    found = measure_modes(dispatches, expected, MODES)
    assert not [one for one in found.values() if isinstance(one, str)]


def test_chains_of_a_long_forward_are_measured_in_each_mode(tmp_path, monkeypatch, build_cache):
    import torch

    from harness.capture.capture import read_capture
    from harness.capture.comparison import compare_models, expect, measure_modes
    from harness.capture.runtime import make_dispatches
    from harness.capture.trial_calls import load_text

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(build_cache))
    script = ROOT / "tests/unit/capture/long_forward.py"
    assert run_command(["capture", str(script), "--model", "net", "--calls", "9", "--module", "LayerChain"]) == 0
    record = read_capture(Path("captured/net"))
    net, dispatches = load_text(script.read_text())["net"], []
    for group in (one for one in record["groups"] if one["problem"]):
        text = Path(f"captured/net/{group['problem']}.py").read_text()
        Path(f"{group['problem']}.py").write_text(text.replace("class Model(", "class ModelNew("))
        plan = group | {"backward": False, "outlines": record["outlines"]}
        dispatches += make_dispatches(net, plan, Path(f"{group['problem']}.py"))
    assert len(dispatches) == 10  # two norms, RoPE, softmax and SwiGLU, in two layers
    calls = [((torch.randn(2, 16, 32, device="cuda"),), {}) for _ in range(3)]
    expected = expect(net, calls)
    assert compare_models(dispatches, expected) == ""
    assert all(one.used for one in dispatches)
    found = measure_modes(dispatches, expected, MODES)
    assert not [one for one in found.values() if isinstance(one, str)]


def test_weights_on_two_devices_are_refused_with_the_reason():
    from torch import nn

    from harness.capture.problem_text import require_plain_state
    from harness.domain import ProblemError

    with pytest.raises(ProblemError, match="on several devices: cpu, cuda:0"):
        require_plain_state(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).cuda()))


def test_equal_modules_of_a_model_on_two_gpus_are_one_problem(tmp_path, monkeypatch, build_cache):
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(build_cache))
    with replacing(tmp_path / "script.py") as script:
        script.write_text(TWO_GPUS)
    assert run_command(["capture", "script.py", "--model", "net", "--calls", "6", "--module", "Part", "--json"]) == 0
    record = json.loads(Path("captured/net/capture.json").read_text())
    groups = {one["kind"]: one for one in record["groups"]}
    assert groups["Part"]["paths"] == ["first", "second"]
    assert groups["Part"]["problem"] == "part", groups["Part"]["reason"]


TWO_GPUS = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 256)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Part().to("cuda:0"), Part().to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x).to("cuda:1"))


net = Net()
with torch.no_grad():
    for _ in range(20):
        net(torch.randn(64, 256, device="cuda:0"))
"""
