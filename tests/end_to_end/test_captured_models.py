"""Models of other packages: every problem that is written is admitted, and their own modules as kernels are right."""

import json
from pathlib import Path

import pytest
import torch

from harness.capture.comparison import applied, compare_models, describe_difference, expect, run_calls
from harness.capture.runtime import make_dispatches
from harness.capture.script import ModelFinder, run_script
from harness.cli.main import run_command

ROOT = Path(__file__).resolve().parents[2]
MODELS = {
    "llama": ("benchmarks/models/llama.py", "transformers", {"llama_attention", "llama_mlp", "llama_rms_norm"}),
    "resnet": ("benchmarks/models/resnet.py", "torchvision", {"basic_block"}),
    "vit": ("benchmarks/models/vit.py", "torchvision", {"encoder_block", "layer_norm"}),
    "decoder": ("examples/model/decoder.py", "torch", {"attention", "add_norm", "swiglu"}),
}

pytestmark = pytest.mark.slow


@pytest.fixture(params=MODELS)
def captured(request, tmp_path, monkeypatch, capsys):
    """Capture the model, and return script, names of problems, and the record."""
    script, package, names = MODELS[request.param]
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    assert run_command(["capture", str(ROOT / script), "--model", "net", "--calls", "8", "--json"]) == 0
    return ROOT / script, names, json.loads(capsys.readouterr().out)


@pytest.mark.filterwarnings("ignore")
def test_captured_problems_are_admitted_and_right_in_the_model(captured, capsys):
    script, names, record = captured
    assert names <= {group["problem"] for group in record["groups"]}
    assert run_command(["problems", "check", "--suite", "captured/net"]) == 0, capsys.readouterr().out
    model, calls = take_calls(script)
    expected = expect(model, calls)
    dispatches = [one for group in record["groups"] if group["problem"] for one in make_originals(model, group)]
    for one in dispatches:
        one.check = describe_difference
        with applied([one]):
            run_calls(model, calls)
        assert (one.used > 0, one.failures) == (True, [])
        one.check = None
    assert compare_models(dispatches, expected) == ""


def make_originals(model, group):
    """Use the `Model` of the problem as its candidate."""
    text = Path(f"captured/net/{group['problem']}.py").read_text()
    candidate = Path(f"{group['problem']}.py")
    candidate.write_text(text[: text.index("def get_inputs")].replace("class Model(", "class ModelNew("))
    return make_dispatches(model, group | {"backward": False}, candidate)


def take_calls(script):
    calls = []

    def before(module, args, kwargs):
        if len(calls) == 2:
            raise SystemExit
        calls.append((args, kwargs))

    finder = ModelFinder("net", lambda model: model.register_forward_pre_hook(before, with_kwargs=True))
    torch.manual_seed(0)
    with finder.watching():
        run_script(script)
    model = finder.require()
    model._forward_pre_hooks.clear()
    return model, calls
