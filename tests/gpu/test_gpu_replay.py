"""Device time by replays: whose work is replayed, what is refused with its reason, and what equal work and known parts
of it measure. The programs need no extension."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
WORK = {  # by name: arguments, what is returned, inputs
    "a product in bfloat16": ("a, b", "a @ b", "torch.randn(2, 2048, 2048, dtype=torch.bfloat16).unbind()"),
    "a product split along its inner size": ("a, b", "a @ b.t()", "torch.randn(2, 64, 65536).half().unbind()"),
    "a convolution": ("x, w", "F.conv2d(x, w, padding=1)", "[torch.randn(8, 32, 56, 56), torch.randn(64, 32, 3, 3)]"),
    "attention": (
        "q, k, v", "F.scaled_dot_product_attention(q, k, v)", "torch.randn(3, 2, 8, 512, 64).half().unbind()",
    ),
    "a sort": ("x", "torch.sort(x, -1)[0]", "[torch.randn(64, 20000)]"),
    "a Fourier transform": ("x", "torch.fft.rfft(x).abs()", "[torch.randn(64, 4096)]"),
    "a short sum": ("a, b", "a + b", "torch.randn(2, 1 << 16).unbind()"),
}  # fmt: skip


def problem(arguments, result, inputs):
    given = f"\ndef get_inputs():\n    return list({inputs})\n\n\ndef get_init_inputs():\n    return []\n"
    return program("Model", arguments, [f"return {result}"]) + given


def program(name, arguments, lines):
    indented = "\n".join(f"        {line}" for line in lines)
    return f"{HEAD}class {name}(nn.Module):\n    def forward(self, {arguments}):\n{indented}\n\n"


@pytest.fixture(scope="module")
def gpu_bench(open_bench):
    return open_bench(isolation="auto", device="cuda:0", call_s=20.0, load_s=60.0)


@pytest.mark.parametrize("name", WORK)
def test_equal_work_is_a_tie_by_device_time(gpu_bench, name):
    arguments, result, inputs = WORK[name]
    mine = program("ModelNew", arguments, [f"return {result}"])
    evaluation = gpu_bench.evaluate(mine, problem(arguments, result, inputs), time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert (evaluation.timing.clock, evaluation.timing.verdict) == ("device", "tie"), evaluation.timing


GRAPH = [
    "if not hasattr(self, 'graph'):",
    "    self.given = x.clone()",
    "    torch.tanh(self.given)",
    "    torch.cuda.synchronize()",
    "    self.graph = torch.cuda.CUDAGraph()",
    "    with torch.cuda.graph(self.graph): self.made = torch.tanh(self.given) * 2",
    "self.given.copy_(x)",
    "self.graph.replay()",
    "return self.made.clone()",
]
STREAMS = [
    "other = torch.cuda.Stream()",
    "other.wait_stream(torch.cuda.current_stream())",
    "with torch.cuda.stream(other): y = torch.tanh(x)",
    "torch.cuda.current_stream().wait_stream(other)",
    "return y * 2",
]
REPLAYED = {
    "its own graph": GRAPH,
    "two streams": STREAMS,
    "a wait in its middle": ["y = torch.tanh(x)", "torch.cuda.synchronize()", "return y * 2"],
    "small constants from the host": ["return torch.tanh(x) * torch.tensor([2.0]).cuda()"],
    "a compiled graph": ["return torch.compile(lambda x: torch.tanh(x) * 2)(x)"],
}
ELEMENTWISE = problem("x", "torch.tanh(x) * 2", "[torch.randn(1024, 1024)]")


@pytest.mark.parametrize("name", REPLAYED)
def test_work_of_this_form_is_replayed(gpu_bench, name):
    evaluation = gpu_bench.evaluate(program("ModelNew", "x", REPLAYED[name]), ELEMENTWISE, time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.clock == "device", evaluation.findings


REFUSED = {
    "read back": ["return torch.tanh(x) * (2 + 0 * x.max().item())"],
    "copied from the host": ["return torch.tanh(x) * torch.full((1024, 1024), 2.0).cuda()"],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_partly_host_work_gets_a_lower_bound_with_the_reason(gpu_bench, reason):
    evaluation = gpu_bench.evaluate(program("ModelNew", "x", REFUSED[reason]), ELEMENTWISE, time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.clock == "bound", evaluation.timing
    notes = [finding.message for finding in evaluation.findings if finding.check == "not_replayable"]
    assert len(notes) == 1 and reason in notes[0], notes


def test_a_reference_may_read_values_back(gpu_bench):
    problem = ELEMENTWISE.replace("torch.tanh(x) * 2", "torch.tanh(x) * (2 + 0 * x.max().item())")
    evaluation = gpu_bench.evaluate(program("ModelNew", "x", ["return torch.tanh(x) * 2"]), problem, time=True)
    assert (evaluation.timing.clock, evaluation.timing.verdict) == ("device", "faster"), evaluation.findings


def test_replayers_serve_all_cases_of_a_candidate(gpu_bench):
    from harness.problems.discovery import parse_problem

    cases = "".join(f"{{'name': 'n{n}', 'sizes': {{'N': {n}}}}}," for n in (64, 256, 2048))
    source = ELEMENTWISE.replace("(1024, 1024)", "(N, 1024)").replace("import torch\n", "import torch\nN = 64\n", 1)
    mine = program("ModelNew", "x", ["return torch.tanh(x) * 2"])
    evaluation = gpu_bench.evaluate(mine, parse_problem(f"{source}\nCASES = [{cases}]\n", Path("p.py"), "s"), time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert [case.timing.clock for case in evaluation.cases] == ["device"] * 3, evaluation.findings


@pytest.mark.parametrize("fewer", [60, 50, 30])
def test_a_known_part_of_the_work_takes_its_part_of_the_time(gpu_bench, fewer):
    loop = "for _ in range({}): x = x * 1.0001"
    baseline = program("Model", "x", [loop.format(60), "return x"]) + (
        "\ndef get_inputs():\n    return [torch.randn(1 << 24)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    mine = program("ModelNew", "x", [loop.format(fewer - 1), f"return x * {1.0001 ** (61 - fewer)!r}"])
    evaluation = gpu_bench.evaluate(mine, baseline, time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.speedup == pytest.approx(60 / fewer, rel=0.01)


COUNTED = f"""{HEAD}class {{name}}(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(64))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        self.calls {{counts}} self.calls + 1
        return x - self.mean

"""
INPUTS = "\ndef get_inputs():\n    return [torch.randn(4096, 64)]\n\n\ndef get_init_inputs():\n    return []\n"


@pytest.mark.parametrize("counts", ["=", "[...] ="], ids=["another tensor", "in place"])
def test_state_that_calls_change_is_replayed(gpu_bench, counts):
    """Each replay begins with a given state, wherever a call leaves it."""
    problem = COUNTED.format(name="Model", counts="[...] =") + INPUTS
    evaluation = gpu_bench.evaluate(COUNTED.format(name="ModelNew", counts=counts), problem, time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.clock == "device", evaluation.findings


def test_outputs_in_memory_reallocated_by_each_call_are_read(gpu_bench):
    lines = ["torch.cuda.empty_cache()", "return torch.tanh(x) * 2"]
    evaluation = gpu_bench.evaluate(program("ModelNew", "x", lines), ELEMENTWISE, time=False)
    assert evaluation.outcome == "correct", evaluation.message


def test_a_fault_in_one_call_of_thirty_two_is_found(gpu_bench):
    """Which calls it is follows from the inputs, since replays run no code of the host. With the usual time budget."""
    from harness.evaluation.settings import TimingPlan

    plan = TimingPlan(allow_load=True)
    is_chosen = "(x.view(torch.int32).long().sum() >> 3) % 32 == 0"
    lines = ["y = torch.tanh(x) * 2", f"return torch.where({is_chosen}, y * 1.5, y)"]
    evaluation = gpu_bench.evaluate(program("ModelNew", "x", lines), ELEMENTWISE, time=True, plan=plan)
    assert evaluation.outcome in ("wrong_value", "suspect"), evaluation.timing


def test_the_inputs_of_a_seed_are_the_same_each_time():
    """A GPU writes in any order what several threads write to one place."""
    import torch

    from harness.domain import Problem
    from harness.problems.inputs.kinds import DERIVED
    from harness.problems.inputs.traits import InputTraits
    from harness.problems.operators import OperatorUse

    def make(generator):
        return (torch.randn(1 << 22, generator=generator, device="cuda"),)

    use = OperatorUse(frozenset(), raised=frozenset([0]))  # by a softmax
    traits = InputTraits(problem=Problem(name="one", suite="own", source=""), use=use)
    for kind in DERIVED:
        for seed in range(40):
            generators = [torch.Generator(device="cuda").manual_seed(seed) for _ in range(2)]
            made = [kind.change(make(generator), traits, generator) for generator in generators]
            assert torch.equal(*chain(*made)), (kind.name, seed)


def test_the_next_candidate_of_a_problem_is_replayed_beside_the_kept_baseline(gpu_bench):
    for factor in ("2", "2.0", "(1 + 1)"):
        mine = program("ModelNew", "x", [f"return torch.tanh(x) * {factor}"])
        evaluation = gpu_bench.evaluate(mine, ELEMENTWISE, time=True, seed=7)
        assert evaluation.outcome == "correct", evaluation.message
        assert (evaluation.timing.clock, evaluation.timing.verdict) == ("device", "tie"), evaluation.timing


MANY = "for _ in range(100): x = x * 1.0001"
MANY_PROBLEM = program("Model", "x", [MANY, "return x"]) + (
    "\ndef get_inputs():\n    return [torch.randn(1 << 14)]\n\n\ndef get_init_inputs():\n    return []\n"
)
MANY_IN_A_GRAPH = [
    "if not hasattr(self, 'graph'):",
    "    self.given = x.clone()",
    "    self.given * 1.0001",
    "    torch.cuda.synchronize()",
    "    self.graph = torch.cuda.CUDAGraph()",
    "    with torch.cuda.graph(self.graph):",
    "        y = self.given",
    "        for _ in range(100): y = y * 1.0001",
    "        self.made = y",
    "self.given.copy_(x)",
    "self.graph.replay()",
    "return self.made.clone()",
]


def test_whole_calls_show_what_a_graph_saves_on_the_host(gpu_bench):
    """A hundred launches: on the device the graph gains nothing. Both programs of a problem have the columns, though
    the second one's baseline was timed beside the first."""
    plain, graph = (
        gpu_bench.evaluate(program("ModelNew", "x", lines), MANY_PROBLEM, time=True, seed=11)
        for lines in ([MANY, "return x"], MANY_IN_A_GRAPH)
    )
    for one in (plain, graph):
        assert one.outcome == "correct", one.message
        timing = one.timing
        assert timing.clock == "device", one.findings
        assert timing.candidate_call_us > timing.candidate_us, timing
        assert timing.baseline_call_us > timing.baseline_us, timing
        print(f"speedup {timing.speedup:.2f}, of whole calls {timing.call_speedup:.2f}", timing.baseline_us,
              timing.candidate_us, timing.baseline_call_us, timing.candidate_call_us)  # fmt: skip
    assert plain.timing.baseline_call_us == graph.timing.baseline_call_us
    assert 0.7 < plain.call_speedup < 1.4
    assert graph.call_speedup > 1.2 * graph.timing.speedup


def test_a_lower_bound_has_whole_calls_of_both(gpu_bench):
    lines = ["return torch.tanh(x) * (2 + 0 * x.max().item())"]
    timing = gpu_bench.evaluate(program("ModelNew", "x", lines), ELEMENTWISE, time=True).timing
    assert timing.clock == "bound"
    assert timing.candidate_call_us <= timing.candidate_us  # which is that of the slowest kind of inputs
    assert timing.baseline_call_us > timing.baseline_us


def test_few_replays_show_that_a_slow_program_is_slower(gpu_bench):
    lines = ["torch.cuda._sleep(1_500_000_000)", "return torch.tanh(x) * 2"]  # at least 0.7 s
    evaluation = gpu_bench.evaluate(program("ModelNew", "x", lines), ELEMENTWISE, time=True)
    print(evaluation.duration_s, dict(evaluation.phases_s), len(evaluation.correctness.trials))
    assert evaluation.outcome == "correct", evaluation.message
    timing = evaluation.timing
    assert (timing.clock, timing.verdict, len(timing.blocks)) == ("device", "slower", 2), evaluation.findings
    kinds = Counter(trial.distribution for trial in evaluation.correctness.trials)
    assert kinds.pop("as_given") <= 3, kinds
    assert kinds.pop("altered", 0) <= 2, kinds
    assert set(kinds.values()) == {1}, kinds
