"""`harness capture`: shares, problems that are written, and models that it refuses."""

import time
from pathlib import Path

import pytest
import torch
from captured_modules import PART, groups_of, written

from harness.capture.trial_calls import copy_state, load_text
from harness.problems.watched_process import describe_inputs

MLP = """
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 128)
        self.scale = nn.Parameter(torch.ones(128))

    def forward(self, x, *, offset=None):
        y = torch.relu(self.up(x)) * self.scale
        return y if offset is None else y + offset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Mlp(), Mlp()

    def forward(self, x):
        return self.first(x), self.second(x)

"""
ORIGINAL = f"import torch\nfrom torch import nn\n{MLP}\nModel = Mlp\n"
RUN = """
net = Net().eval()
with torch.no_grad():
    for step in range(50):
        net(torch.randn(32, 64))
"""


def test_equal_modules_are_one_problem_with_their_parameters_by_name(capture):
    code, record, _ = capture(MLP + RUN, "--module", "Mlp")
    assert code == 0
    group = groups_of(record)["Mlp"]
    assert (group["problem"], group["paths"], group["calls"]) == ("mlp", ["first", "second"], 2)
    assert describe_inputs(written()["mlp"], "full") == (("float32", (32, 64)),)
    model, original = (load_text(source)["Model"]() for source in (written()["mlp"].source, ORIGINAL))
    assert list(model.state_dict()) == ["scale", "up.weight", "up.bias"]
    copy_state(original, model)
    x = torch.randn(5, 64)
    assert torch.equal(model(x), original(x))


def test_sizes_that_vary_become_cases_weighted_by_frequency(capture):
    script = MLP + RUN.replace("randn(32", "randn((32, 48, 48, 48)[(step - 1) // 3 % 4 if step else 1]")
    capture(script, "--module", "Mlp", "--calls", "22")
    cases = written()["mlp"].cases
    assert [(case.sizes, case.weight) for case in cases] == [((("batch", 48),), 0.75), ((("batch", 32),), 0.25)]


def test_the_script_ends_after_the_calls_that_were_asked_for(capture):
    endless = MLP + RUN.replace(
        "for step in range(50):", "while True:\n        print('step', file=__import__('sys').stderr)"
    )
    began = time.monotonic()
    code, record, stderr = capture(endless, "--calls", "6", "--module", "Mlp")
    assert (code, record["calls"], stderr.count("step")) == (0, 2, 6)
    assert time.monotonic() - began < 60


def test_a_model_that_is_called_once_is_called_again_to_be_profiled(capture):
    code, record, _ = capture(MLP + "net = Net().eval()\nwith torch.no_grad():\n    net(torch.randn(32, 64))\n")
    assert code == 0
    assert record["calls"] == 2


def test_a_local_variable_names_the_model_and_arguments_reach_the_script(capture):
    script = (
        MLP
        + "import sys\ndef main():\n    module, before = Net(), nn.Identity()\n    for _ in range(int(sys.argv[1])):\n"
        + "        module(before(torch.ones(8, 64)))\nmain()\n"
    )
    code, record, _ = capture(script, "--module", "Mlp", "--", "4", model="module")
    assert (code, record["model"]) == (0, "Net")


def test_a_model_of_another_module_is_named_by_its_attribute(capture):
    Path("models.py").write_text("import torch\nfrom torch import nn\n" + MLP + "network = Net().eval()\n")
    script = "import models\nfor _ in range(9):\n    models.network(torch.ones(8, 64))\n"
    assert capture(script, model="models.network")[1]["model"] == "Net"


def test_a_compiled_model_is_captured_uncompiled(capture):
    code, record, _ = capture(MLP + RUN.replace("Net().eval()", "torch.compile(Net().eval())"), "--module", "Mlp")
    assert (code, groups_of(record)["Mlp"]["problem"]) == (0, "mlp")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("net = nn.Linear(2, 2)\nnn.Linear(2, 2)(torch.ones(2))\n", "never called a model 'net'"),
        ("for _ in range(2):\n    nn.Linear(2, 2)(torch.ones(2))\n", "is the name of several models"),
    ],
)
def test_a_model_that_cannot_be_chosen_is_wrong_usage(capture, script, message):
    code, _, stderr = capture(script, model="Linear" if "several" in message else "net")
    assert code == 2
    assert message in stderr


def test_an_exception_of_the_script_is_shown_as_its_own(capture):
    code, _, stderr = capture(MLP + RUN.replace("64))", "65))"))
    assert code == 3
    assert 'script.py", line' in stderr
    assert "harness/" not in stderr
    assert "mat1 and mat2 shapes cannot be multiplied" in stderr


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_scripted_model_is_wrong_usage(capture):
    code, _, stderr = capture("net = torch.jit.script(nn.Linear(2, 2))\nnet(torch.ones(2))\n")
    assert (code, "TorchScript module" in stderr) == (2, True)


def test_a_script_that_exits_before_the_model_is_called_is_reported(capture):
    code, _, stderr = capture("import sys\nsys.exit(4)\n")
    assert (code, "exit code 4" in stderr) == (3, True)


def test_no_value_of_weights_or_data_is_written(capture):
    script = MLP + RUN.replace(
        "net = Net().eval()", "net = Net().eval()\nnn.init.constant_(net.first.up.bias, 0.31837)"
    )
    capture(script.replace("torch.randn(32, 64)", "torch.full((32, 64), 0.123456)"), "--module", "Mlp")
    text = "".join(path.read_text() for path in Path("captured/net").iterdir())
    assert "0.31837" not in text
    assert "0.123456" not in text


REFUSED = {
    "control flow": ("", "", "return x * self.weight if x.sum() > 0 else x", "", ": it depends on values of tensors"),
    "random numbers": ("", "", "return nn.functional.dropout(x * self.weight, 0.5, True)", "", "random numbers"),
    "other arguments": ("", ", cache", "return x * self.weight", ", object()", "its argument cache is a object"),
    "quantised": (
        "self.register_buffer('q', torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8))", "",
        "return x * self.weight + self.q.dequantize()[0]", "", "quantised",
    ),
    "several devices": (
        "self.more = nn.Parameter(torch.ones(4, device='meta'))", "", "return x * self.weight", "", "offloaded",
    ),
    "a sparse argument": (
        "", ", more", "return x * self.weight + more.to_dense()[0]", ", torch.eye(64).to_sparse()",
        "its argument more is a tensor that is sparse",
    ),
    "a tensor beside the state": (
        "self.table = torch.rand(64)", "", "return x * self.weight + self.table", "", "neither a parameter nor a",
    ),
}  # fmt: skip


SHARDED = """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        mesh = init_device_mesh("cpu", (1,))
        self.weight = nn.Parameter(distribute_tensor(torch.ones(64), mesh, [Shard(0)]))

    def forward(self, x):
        return x.sin() * self.weight.to_local()


net = nn.Sequential(Part(), nn.Linear(64, 64)).eval()
try:
    with torch.no_grad():
        while True:
            net(torch.randn(32, 64))
finally:
    dist.destroy_process_group()
"""


@pytest.mark.filterwarnings("ignore")
def test_sharded_weights_are_refused_with_the_reason(capture):
    code, record, _ = capture(SHARDED, "--module", "Part", "--module", "Linear")
    groups = groups_of(record)
    assert (code, groups["Linear"]["problem"]) == (0, "linear")
    assert "its weight weight is quantised or sharded (DTensor torch.float32)" in groups["Part"]["reason"]


@pytest.mark.filterwarnings(
    "ignore:torch.ao.quantization", "ignore:.*quantize", "ignore::DeprecationWarning", "ignore::UserWarning"
)
@pytest.mark.quick(4)
@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_is_no_problem_is_refused_with_the_reason(capture, name):
    init, extra, forward, given, reason = REFUSED[name]
    script = PART.format(init=init, extra=extra, forward=forward, given=given)
    code, record, _ = capture(script + RUN, "--module", "Part", "--module", "Linear")
    groups = groups_of(record)
    assert code == 0
    assert reason in groups["Part"]["reason"]
    assert (groups["Part"]["problem"], groups["Linear"]["problem"]) == ("", "linear")


ACCEPTED = {
    "complex weights": (
        "self.factors = nn.Parameter(torch.randn(33, dtype=torch.complex64))",
        "return torch.fft.irfft(torch.fft.rfft(x) * self.factors) + self.weight",
    ),
    "a list of parameters": (
        "self.more = nn.ParameterList([torch.randn(64), torch.randn(64)])",
        "return x * self.weight + self.more[0] * self.more[1]",
    ),
    "a shared module": (
        "self.a = nn.Sequential(nn.Linear(64, 64), nn.ReLU())\n        self.b = self.a",
        "return self.b(self.a(x)) * self.weight",
    ),
    "weight normalisation": (
        "self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(64, 64))",
        "return self.linear(x) * self.weight",
    ),
    "inference mode": ("pass", "return x * self.weight + torch.ones(()) * x.is_inference()"),
}  # fmt: skip


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", ACCEPTED)
def test_modules_of_many_forms_become_problems(capture, name):
    init, forward = ACCEPTED[name]
    run = RUN.replace("no_grad", "inference_mode") if name == "inference mode" else RUN
    _, record, _ = capture(PART.format(init=init, extra="", forward=forward, given="") + run, "--module", "Part")
    assert groups_of(record)["Part"]["problem"] == "part", groups_of(record)["Part"]["reason"]


def test_an_input_that_is_changed_is_declared(capture):
    script = PART.format(init="", extra="", forward="return x.mul_(2).add_(self.weight)", given=".clone()")
    capture(script + RUN, "--module", "Part")
    assert written()["part"].in_place


def test_arguments_behind_one_that_is_not_given_keep_their_names(capture):
    forward = "return x * self.weight + more if mask is None else x * mask"
    script = PART.format(init="", extra=", mask=None, more=None", forward=forward, given=", more=x.sin()")
    capture(script + RUN, "--module", "Part")
    model = load_text(written()["part"].source)["Model"]()
    x, more = torch.randn(2, 32, 64)
    assert torch.equal(model(x, more=more), x * model.weight + more)


@pytest.mark.quick(5)
def test_indices_of_a_graph_network_are_below_the_number_of_nodes(capture):
    """The number of edges between different nodes depends on data, and torch.export asserts facts about it."""
    forward = """source, target = edges[:, edges[0] != edges[1]]
        return torch.zeros_like(x).index_add(0, target, (x * self.weight)[source])"""
    script = PART.format(init="", extra=", edges", forward=forward, given=", torch.randint(0, 9, (2, 100))")
    _, record, _ = capture(script + RUN, "--module", "Part")
    assert groups_of(record)["Part"]["problem"] == "part", groups_of(record)["Part"]["reason"]
    assert '"edges": {"kind": "index", "below": 32}' in written()["part"].source
    assert "torch.ops" not in written()["part"].source


LOOP = """
net = Net().eval()
with torch.no_grad():
    for step in range(50):
        {body}
"""
PASSES = PART.format(init="", extra=", mask", forward="return x * self.weight * mask", given=", mask").replace(
    "forward(self, x):", "forward(self, x, mask):"
)


def test_values_of_later_calls_count(capture):
    body = "net(torch.randn(32, 64), torch.arange(64) < torch.tensor([[64 if step < 2 else 8]] * 32))"
    capture(PASSES + LOOP.format(body=body), "--module", "Part")
    assert "torch.arange(64) < torch.randint(1, 64 + 1, (32, 1))" in written()["part"].source


def test_calls_that_fail_or_are_empty_are_left_out(capture):
    body = """
        try:
            net(torch.randn(32, 64 if step % 2 else 63), torch.ones(64))
        except RuntimeError:
            net(torch.randn(0, 64), torch.ones(64))"""
    _, record, _ = capture(PASSES + LOOP.format(body=body), "--module", "Part", "--calls", "12")
    part = groups_of(record)["Part"]
    assert (part["problem"], part["shapes"]) == ("part", [[[[32, 32], [64, 64]], [[64, 64]]]])


def test_hooks_of_a_module_are_no_part_of_its_problem(capture):
    hooks = """
net.first.register_forward_hook(lambda module, args, output: output + 1)
net.first.register_forward_pre_hook(lambda module, args: args[0][:16] * 2)
"""
    _, record, _ = capture(MLP + RUN.replace("with", f"{hooks}with"), "--module", "Mlp")
    assert groups_of(record)["Mlp"]["paths"] == ["first", "second"]
    assert [[[16, 16], [64, 64]]] in groups_of(record)["Mlp"]["shapes"]  # as the hook gives it
    model, original = (load_text(source)["Model"]() for source in (written()["mlp"].source, ORIGINAL))
    copy_state(original, model)
    x = torch.randn(32, 64)
    torch.testing.assert_close(model(x), original(x))


def test_an_argument_that_is_returned_is_no_output_of_the_problem(capture):
    forward = "y = x * self.weight\n        return {'y': [y, None], 'rest': (mask, y.sin(), x.to(x.dtype), y)}"
    script = PART.format(init="", extra=", mask", forward=forward, given=", torch.ones(64)")
    _, record, _ = capture(script.replace("torch.ones(64)))", "torch.ones(64))['y'][0])") + RUN, "--module", "Part")
    part, model = groups_of(record)["Part"], load_text(written()["part"].source)["Model"]()
    x = torch.randn(32, 64)
    y, sines = model(x)
    assert torch.equal(y.sin(), sines)
    assert (part["inputs"], part["outputs"]) == (["x"], "{'y': [0, None], 'rest': ('mask', 1, 'x', 0)}")


def test_a_model_on_the_meta_device_is_refused_with_the_reason(capture):
    script = MLP + RUN.replace("eval()", "to('meta')").replace("32, 64", "32, 64, device='meta'")
    code, record, stderr = capture(script, "--module", "Mlp")
    assert (code, record) == (2, None)
    assert "is on the meta device" in stderr


def test_a_call_under_vmap_is_refused_with_the_reason(capture):
    run = RUN.replace("net(torch", "torch.vmap(net)(torch")
    code, record, _ = capture(MLP + run, "--module", "Mlp")
    assert code == 0
    assert "of torch.func" in groups_of(record)["Mlp"]["reason"]


def test_shared_weights_stay_shared(capture):
    forward = "return x * self.weight + self.tied"
    script = PART.format(init="self.tied = self.weight", extra="", forward=forward, given="")
    capture(script + RUN, "--module", "Part")
    model = load_text(written()["part"].source)["Model"]()
    assert model.tied is model.weight


def test_problems_of_a_captured_model_are_admitted(capture, capsys):
    from harness.cli.main import run_command

    capture(MLP + RUN, "--module", "Mlp")
    assert run_command(["problems", "check", "--suite", "captured/net"]) == 0
    assert "1 of 1 problems admitted" in " ".join(capsys.readouterr().out.split())


def test_a_script_that_does_not_exist_is_wrong_usage(capsys):
    from harness.cli.main import run_command

    assert run_command(["capture", "none.py", "--model", "x"]) == 2
    assert "no script none.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        ("x + 0 * self.weight", "identity"),
        ("1e-9 * x + self.weight", "output hardly depends on its inputs, as often without trained weights"),
        (
            "x.sin() * self.weight * (torch.arange(32)[:, None] < 31)",
            "the last elements of output do not depend on its inputs",
        ),
    ],
)
def test_a_module_that_cannot_be_scored_is_no_problem(capture, forward, reason):
    script = PART.format(init="", extra="", forward=f"return {forward}", given="")
    _, record, _ = capture(script + RUN, "--module", "Part")
    assert f"it cannot be scored: {reason}" in groups_of(record)["Part"]["reason"]
    assert not Path("captured/net/part.py").exists()


def test_a_new_capture_removes_the_problems_of_the_last(capture):
    capture(MLP + RUN, "--module", "Mlp")
    Path("captured/net/own.py").write_text("# a file of the user")
    capture(MLP + RUN, "--module", "Linear")
    assert sorted(path.name for path in Path("captured/net").iterdir()) == ["capture.json", "linear.py", "own.py"]


def test_the_capture_of_another_version_is_made_again(capture, capsys):
    from harness.cli.main import run_command

    capture(MLP + RUN, "--module", "Linear")
    path = Path("captured/net/capture.json")
    path.write_text(path.read_text().replace('"arguments"', '"older"'))
    assert run_command(["apply", "captured/net", "--script", "script.py"]) == 2
    assert "capture the model again" in capsys.readouterr().err
    assert capture(MLP + RUN, "--module", "Linear")[0] == 0


def test_the_time_of_operators_beside_the_modules_inside_is_named(capture):
    from harness.report.terminal.capture import list_capture_notes

    forward = "for _ in range(300 if x.sum() > 1e9 else 301):\n            x = x.sin() + x\n        return self.other("
    script = PART.format(init="", extra="", forward="return x * self.weight", given="")
    _, record, _ = capture(script.replace("return self.other(", forward) + RUN)
    net = groups_of(record)["Net"]
    assert 0.1 < net["own_share"] < 1
    assert groups_of(record)["Linear"]["own_share"] == groups_of(record)["Linear"]["share"]
    notes = [line for line in list_capture_notes(record, Path(), "net") if "in operators of Net.forward itself" in line]
    assert "depends on values or sizes of tensors" in notes[0]


@pytest.mark.slow
def test_a_chain_beside_the_modules_inside_is_timed_as_a_module(capture):
    forward = "for _ in range(300):\n            x = x.sin() + x\n        return self.other("
    script = PART.format(init="", extra="", forward="return x * self.weight", given="")
    _, record, _ = capture(script.replace("return self.other(", forward) + RUN)
    groups = groups_of(record)
    assert groups["NetChain"]["share"] > groups["Net"]["own_share"]
    assert "too many for one problem" in groups["NetChain"]["reason"]
