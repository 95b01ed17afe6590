"""What is right and what is not, through the whole judge: near misses, calls that do not repeat, state and weights that
change, and inputs beyond what a problem speaks of. On the CPU device, in plain Python.
"""

import pytest

HEAD = """
import os, time
import torch
from torch import nn
"""

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return {inputs}

def get_init_inputs():
    return []

{settings}
"""


def write_problem(forward, *, init="pass", arguments="x", inputs="[torch.randn(64, 65)]", settings=""):
    return PROBLEM.format(
        init=indent(init), arguments=arguments, forward=indent(forward), inputs=inputs, settings=settings
    )


def write_candidate(forward, *, init="pass", arguments="x", before=""):
    source = PROBLEM.format(init=indent(init), arguments=arguments, forward=indent(forward), inputs="[]", settings="")
    return HEAD + before + source.replace("class Model(", "class ModelNew(")


def indent(code):
    return code.strip().replace("\n", "\n        ")


@pytest.fixture(scope="module")
def judge(open_bench):
    """Evaluates a candidate on a problem given as source, reading the problem's settings as from a file."""
    bench = open_bench(confinement="auto", call_s=5.0)

    def run(candidate, problem, tmp_path, **options):
        from harness.problems.discovery import read_problem

        path = tmp_path / "toy.py"
        path.write_text(problem)
        for _ in range(8):
            evaluation = bench.judge(candidate, read_problem(path, "mine"), **options)
            if not any(finding.message.startswith("no time was left") for finding in evaluation.findings):
                break  # else the machine is too busy for all probes
        return evaluation

    return run


def find(evaluation, check):
    """The one finding of that check; None without any."""
    found = [finding for finding in evaluation.findings if finding.check == check]
    assert len(found) <= 1
    return found[0] if found else None


def warnings_of(evaluation):
    return {finding.check for finding in evaluation.findings if finding.severity == "warning"}


# A scale of every element: inside and outside of what each format allows (see FLOORS in leaf_comparison.py).
NEAR_MISSES = {
    "float64": (0.9e-11, 1.2e-11),
    "float32": (0.9e-4, 1.2e-4),
    "float16": (1.2e-3, 3.2e-3),
    "bfloat16": (0.9e-2, 2.5e-2),
    "complex64": (0.9e-4, 1.2e-4),
}


@pytest.mark.parametrize("dtype", NEAR_MISSES)
@pytest.mark.parametrize("side", ["inside", "outside"])
def test_a_near_miss_is_told_from_a_hit(judge, tmp_path, dtype, side):
    scale = NEAR_MISSES[dtype][side == "outside"]
    wide = "complex128" if dtype == "complex64" else "float64"
    problem = write_problem("return x * 2", inputs=f"[torch.randn(64, 65, dtype=torch.{dtype})]")
    forward = f"return (x.to(torch.{wide}) * (2 * (1 + {scale}))).to(torch.{dtype})"
    evaluation = judge(write_candidate(forward), problem, tmp_path)
    assert evaluation.outcome == ("correct" if side == "inside" else "wrong_value"), evaluation.message


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_whole_numbers_are_wrong_by_one_in_one_place(judge, tmp_path, dtype):
    problem = write_problem("return x.clone()", inputs=f"[torch.randint(0, 2, (64, 65)).to(torch.{dtype})]")
    right = judge(write_candidate("return x + 0 if x.dtype != torch.bool else ~~x"), problem, tmp_path)
    wrong = judge(
        write_candidate("out = x.clone()\nout[63, 64] = 1 - out[63, 64].int()\nreturn out"), problem, tmp_path
    )
    assert right.outcome == "correct", right.message
    assert wrong.outcome == "wrong_value"
    assert "1 of 4160 elements wrong; at [63, 64]" in wrong.message


JITTER = "return x * 2 * (1 + 1e-6 * torch.rand(65, generator=self.random))"
OWN_RANDOM = "self.random = torch.Generator()\nself.random.seed()"


DETERMINISTIC = write_problem("return x * 2", settings="DETERMINISTIC = True")


def test_two_calls_on_the_same_inputs_must_agree_to_the_last_bit_where_declared(judge, tmp_path):
    evaluation = judge(write_candidate(JITTER, init=OWN_RANDOM), DETERMINISTIC, tmp_path)
    assert evaluation.outcome == "wrong_value"
    finding = find(evaluation, "nondeterministic")
    assert finding.severity == "fatal"
    assert "of 4160 elements differ, by up to " in finding.message
    assert "DETERMINISTIC = True" in finding.message
    assert evaluation.correctness.trials[-1].distribution == "again"
    assert evaluation.correctness.trials[-1].mismatched > 1000


def test_elsewhere_calls_may_differ_within_the_tolerance_which_is_noted(judge, tmp_path):
    problem = write_problem("return x * 2")
    evaluation = judge(write_candidate(JITTER, init=OWN_RANDOM), problem, tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "nondeterministic")
    assert finding.severity == "note"
    assert "of 4160 elements differ, by up to " in finding.message
    wrong = JITTER.replace("1e-6", "(1e-2 if self.calls == 4 else 0.0)")
    counted = f"self.calls += 1\n{wrong}"
    evaluation = judge(write_candidate(counted, init=f"{OWN_RANDOM}\nself.calls = 0"), problem, tmp_path)
    assert evaluation.outcome == "wrong_value"


def test_repeating_the_last_answer_does_not_hide_that_calls_differ(judge, tmp_path):
    forward = f"""
if self.last is None or not torch.equal(self.last[0], x):
    self.last = x.clone(), self.compute(x)
return self.last[1].clone()

    def compute(self, x):
        {JITTER}
"""
    source = write_candidate(forward, init=f"{OWN_RANDOM}\nself.last = None").replace("            def", "    def")
    evaluation = judge(source.replace("                return x", "        return x"), DETERMINISTIC, tmp_path)
    assert find(evaluation, "nondeterministic") is not None, evaluation.message


RELU = "return torch.relu(x)"


def test_what_holds_only_for_the_inputs_that_the_problem_gives_is_a_warning(judge, tmp_path):
    problem = write_problem(RELU, inputs="[torch.rand(64, 65).abs()]")  # stated: legitimate programs may rely on it
    evaluation = judge(write_candidate("return x.clone()"), problem, tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "input_specialised")
    assert finding.severity == "warning"
    assert "normal" in finding.message
    assert "zeros" not in finding.message
    assert "normal: wrong_value: output: " in finding.evidence
    assert "elements wrong" in finding.evidence
    assert warnings_of(evaluation) == {"input_specialised"}


def test_what_holds_for_all_inputs_gives_no_warning(judge, tmp_path):
    problem = write_problem(RELU, inputs="[torch.rand(64, 65)]")
    evaluation = judge(write_candidate("return x.clamp_min(0)"), problem, tmp_path)
    assert (evaluation.outcome, warnings_of(evaluation)) == ("correct", set())


def test_declared_distributions_are_required(judge, tmp_path):
    problem = write_problem(RELU, inputs="[torch.rand(64, 65)]", settings='DISTRIBUTIONS = ("as_given", "normal")')
    evaluation = judge(write_candidate("return x.clone()"), problem, tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert evaluation.message.endswith(("(on normal inputs)", "(on mixed inputs)"))


IGNORES_STRIDES = "return x.as_strided((64, 65), (65, 1)) * 2"
LAYOUTS = {
    "ignores_strides": IGNORES_STRIDES,
    "raises": "assert x.is_contiguous()\nreturn x * 2",
    "crashes": "if not x.is_contiguous(): os.abort()\nreturn x * 2",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_candidate_for_contiguous_inputs_only_is_right_with_a_warning(judge, tmp_path, name):
    evaluation = judge(write_candidate(LAYOUTS[name]), write_problem("return x * 2"), tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "layout_specialised")
    assert finding.severity == "warning"
    assert finding.evidence.startswith("padded: ")
    stopped = [finding.message for finding in evaluation.findings if finding.message.startswith("not all probes")]
    assert len(stopped) == (name == "crashes")


def test_a_layout_that_the_reference_does_not_take_is_no_fault_of_a_candidate(judge, tmp_path):
    evaluation = judge(write_candidate("return x.view(-1) * 2"), write_problem("return x.view(-1) * 2"), tmp_path)
    assert (evaluation.outcome, warnings_of(evaluation)) == ("correct", set())


def test_a_declared_layout_is_required(judge, tmp_path):
    problem = write_problem("return x * 2", settings='DISTRIBUTIONS = ("as_given", "padded")')
    assert judge(write_candidate(IGNORES_STRIDES), problem, tmp_path).outcome == "wrong_value"
    assert judge(write_candidate("return x + x"), problem, tmp_path).outcome == "correct"


LINEAR = {"init": "self.linear = nn.Linear(65, 48)", "forward": "return torch.relu(self.linear(x))"}
PACKED = {
    "init": f"{LINEAR['init']}\nself.packed = self.linear.weight.detach().t().contiguous()",
    "forward": "return torch.relu(torch.addmm(self.linear.bias, x, self.packed))",
}
# Packs again when the weights have changed, which torch counts.
PACKED_WITH_CARE = {
    "init": f"{PACKED['init']}\nself.version = self.linear.weight._version",
    "forward": "if self.version != self.linear.weight._version:\n"
    "    self.packed, self.version = self.linear.weight.detach().t().contiguous(), self.linear.weight._version\n"
    f"{PACKED['forward']}",
}


def test_weights_packed_at_construction_are_honest_and_noted(judge, tmp_path):
    evaluation = judge(write_candidate(**PACKED), write_problem(**LINEAR), tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "weights_packed")
    assert finding.severity == "warning"
    assert "elements wrong" in finding.evidence
    assert "times the allowed error" in finding.evidence


def test_weights_packed_at_construction_are_wrong_where_weights_are_dynamic(judge, tmp_path):
    problem = write_problem(**LINEAR, settings="DYNAMIC_WEIGHTS = True")
    evaluation = judge(write_candidate(**PACKED), problem, tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert find(evaluation, "weights_packed").severity == "fatal"
    for honest in (LINEAR, PACKED_WITH_CARE):
        evaluation = judge(write_candidate(**honest), problem, tmp_path)
        assert evaluation.outcome == "correct", evaluation.message
        assert "other_weights" in [trial.distribution for trial in evaluation.correctness.trials]


def test_weights_that_are_all_ones_change_as_well(judge, tmp_path):
    norm = {"init": "self.norm = nn.LayerNorm(65)", "forward": "return self.norm(x)"}
    ignored = {"init": norm["init"], "forward": "return nn.functional.layer_norm(x, (65,))"}
    evaluation = judge(write_candidate(**ignored), write_problem(**norm), tmp_path)
    assert evaluation.outcome == "wrong_value"
    evaluation = judge(write_candidate(**norm), write_problem(**norm), tmp_path)
    assert warnings_of(evaluation) == set()


SHAPES = {
    "hard_coded": "out = torch.empty(64, 65)\nout[:] = x * 2\nreturn out",
    "first_rows_only": "out = x * 2\nif x.shape[0] != 64: out[-1] = 0\nreturn out",
    "raises": "assert x.shape == (64, 65)\nreturn x * 2",
    "exits": "if x.shape != (64, 65): os._exit(3)\nreturn x * 2",
    "hangs": "if x.shape != (64, 65): time.sleep(600)\nreturn x * 2",
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_candidate_for_one_shape_is_right_with_a_warning(judge, tmp_path, name):
    evaluation = judge(write_candidate(SHAPES[name]), write_problem("return x * 2"), tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "shape_specialised")
    assert finding.severity == "warning"
    assert finding.evidence.startswith("smaller: inputs of shapes (")
    assert warnings_of(evaluation) - {"screen"} == {"shape_specialised"}
    assert evaluation.duration_s < 15


@pytest.mark.parametrize("name", ["hard_coded", "first_rows_only", "raises"])
def test_a_candidate_for_one_shape_is_wrong_where_shapes_are_dynamic(judge, tmp_path, name):
    problem = write_problem("return x * 2", settings="DYNAMIC_SHAPES = True")
    evaluation = judge(write_candidate(SHAPES[name]), problem, tmp_path)
    assert evaluation.outcome == {"hard_coded": "runtime_error", "raises": "runtime_error"}.get(name, "wrong_value")
    evaluation = judge(write_candidate("return x + x"), problem, tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    assert "nearby_shape" in [trial.distribution for trial in evaluation.correctness.trials]


BATCH_NORM = {"init": "self.norm = nn.BatchNorm1d(65)", "forward": "return self.norm(x)"}
TRAINING = write_problem(**BATCH_NORM, settings="TRAINING = True")
STATISTICS = """
mean, var = x.mean(0), x.var(0, unbiased=False)
out = (x - mean) / torch.sqrt(var + 1e-5) * self.norm.weight + self.norm.bias
with torch.no_grad():
    self.norm.running_mean.lerp_(mean, 0.1)
    self.norm.running_var.lerp_(x.var(0), 0.1)
    self.norm.num_batches_tracked += 1
return out
"""
WRONG_TRAINING = {
    "in_evaluation_mode": "return nn.functional.batch_norm(x, self.norm.running_mean, self.norm.running_var)",
    "without_statistics": "return nn.functional.batch_norm(x, None, None, training=True)",
    "biased_variance": STATISTICS.replace("x.var(0), 0.1", "var, 0.1"),
    "from_fresh_statistics": STATISTICS.replace("running_mean.lerp_(mean, 0.1)", "running_mean.copy_(0.1 * mean)"),
}


@pytest.mark.parametrize("forward", [BATCH_NORM["forward"], STATISTICS], ids=["torch", "by_hand"])
def test_training_mode_is_judged_with_its_buffers(judge, tmp_path, forward):
    evaluation = judge(write_candidate(forward, init=BATCH_NORM["init"]), TRAINING, tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    assert "second_in_a_row" in [trial.distribution for trial in evaluation.correctness.trials]


def test_calls_of_batch_norm_are_counted_only_where_results_depend_on_the_count(judge, tmp_path):
    forward = STATISTICS.replace("num_batches_tracked += 1", "num_batches_tracked += 0")
    assert judge(write_candidate(forward, init=BATCH_NORM["init"]), TRAINING, tmp_path).outcome == "correct"
    init = BATCH_NORM["init"].replace("65", "65, momentum=None")
    problem = write_problem(BATCH_NORM["forward"], init=init, settings="TRAINING = True")
    evaluation = judge(write_candidate(forward.replace("0.1)", "1.0)"), init=init), problem, tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert "state norm.num_batches_tracked" in evaluation.message


@pytest.mark.parametrize("name", WRONG_TRAINING)
def test_training_without_the_references_buffers_is_wrong(judge, tmp_path, name):
    evaluation = judge(write_candidate(WRONG_TRAINING[name], init=BATCH_NORM["init"]), TRAINING, tmp_path)
    assert evaluation.outcome == "wrong_value", evaluation.message
    if name != "in_evaluation_mode":
        assert "state norm." in evaluation.message


def test_a_candidate_without_the_state_that_calls_change_is_wrong(judge, tmp_path):
    forward = "return nn.functional.batch_norm(x, None, None, training=True)"
    evaluation = judge(write_candidate(forward), TRAINING, tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert "norm.running_mean" in find(evaluation, "state").message


COUNTER = {
    "init": 'self.register_buffer("steps", torch.zeros(()))',
    "forward": "self.steps += 1\nreturn x * self.steps",
}


def test_state_that_calls_change_in_evaluation_mode_is_reset_and_compared(judge, tmp_path):
    problem = write_problem(**COUNTER)
    assert judge(write_candidate(**COUNTER), problem, tmp_path).outcome == "correct"
    still = {**COUNTER, "forward": "return x * (self.steps + 1)"}
    evaluation = judge(write_candidate(**still), problem, tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert "state steps" in evaluation.message


def test_a_candidate_that_changes_weights_that_the_reference_leaves_alone_is_wrong(judge, tmp_path):
    forward = "self.linear.weight.mul_(1 + 1e-7)\nreturn torch.relu(self.linear(x))"
    evaluation = judge(write_candidate(forward, init=LINEAR["init"]), write_problem(**LINEAR), tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert find(evaluation, "nondeterministic") or "linear.weight" in find(evaluation, "state").message


def test_a_weight_that_is_not_read_must_be_left_alone_too(judge, tmp_path):
    forward = "out = torch.relu(self.linear(x))\nself.spare.add_(1)\nreturn out"
    init = f"{LINEAR['init']}\nself.spare = nn.Parameter(torch.zeros(3))"
    problem = write_problem(init=init, forward=LINEAR["forward"])
    evaluation = judge(write_candidate(forward, init=init), problem, tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert "calls changed the weight spare" in find(evaluation, "state").message
    assert "3 of 3 elements differ, by up to " in find(evaluation, "state").message


def test_every_timed_call_begins_with_the_same_state(judge, tmp_path):
    from harness.evaluation.timing.plan import TimingPlan

    plan = TimingPlan(max_blocks=20, attempts=1)
    evaluation = judge(write_candidate(**COUNTER), write_problem(**COUNTER), tmp_path, time=True, plan=plan)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing is not None


BAD_REFERENCES = {
    "beyond its own tolerance": ("return x + torch.rand(65)", "", "differ by more than"),
    "NaN throughout": ("return x * float('nan')", "", "is all NaN"),
    "overflowing": ("return (x * 60).exp().log()", "", "where float64 is finite"),
    "too large": ("return x.repeat(1 << 20, 1 << 10).sum()", "", "needs more memory than there is"),
    "too large at once": ("return torch.zeros(1 << 45).sum() + x", "", "needs more memory than there is"),
}


@pytest.mark.parametrize("name", BAD_REFERENCES)
def test_a_reference_that_is_no_measure_is_our_error_and_the_judge_lives(judge, tmp_path, name):
    forward, settings, message = BAD_REFERENCES[name]
    evaluation = judge(write_candidate("return x * 2"), write_problem(forward, settings=settings), tmp_path)
    assert evaluation.outcome == ("not_run" if name.startswith("too large") else "harness_error")
    assert evaluation.message.startswith("mine/toy.py: ")
    assert message in evaluation.message
    assert judge(write_candidate("return x * 2"), write_problem("return x * 2"), tmp_path).outcome == "correct"


VARYING = "return x * 2 * (1 + 1e-6 * torch.rand(65))"


@pytest.mark.parametrize("settings", ["", "DETERMINISTIC = True"])
def test_a_reference_that_does_not_repeat_itself_is_a_note_and_asks_for_no_more_of_candidates(
    judge, tmp_path, settings
):
    problem = write_problem(VARYING, settings=settings)
    for candidate in (write_candidate("return x * 2"), write_candidate(JITTER, init=OWN_RANDOM)):
        evaluation = judge(candidate, problem, tmp_path)
        assert evaluation.outcome == "correct", evaluation.message
        finding = find(evaluation, "reference_varies")
        assert finding.severity == "note"
        assert "of 4160 elements differ, by up to " in finding.message
    assert judge(write_candidate("return x * 2.001"), problem, tmp_path).outcome == "wrong_value"


DROPOUT = {"init": "self.drop = nn.Dropout(0.5)", "forward": "return self.drop(x) * 2"}
SEEDED = write_problem(**DROPOUT, settings="TRAINING = True\nSEEDED_CALLS = True")
WRONG_DROPOUT = {
    "left out": "return x * 2",
    "of another seed": "torch.manual_seed(0)\nreturn self.drop(x) * 2",
    "of the first call": "if self.mask is None: self.mask = self.drop(torch.ones_like(x)) * 2\nreturn x * self.mask",
    "drawn in another order": "torch.rand(1)\nreturn self.drop(x) * 2",
}


def test_dropout_draws_the_same_numbers_in_reference_and_candidate(judge, tmp_path):
    evaluation = judge(write_candidate("return 2 * self.drop(x)", init=DROPOUT["init"]), SEEDED, tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.correctness.truth == "reference"
    assert dict(evaluation.environment)["mode"] == "training"
    assert dict(evaluation.environment)["call_seeds"] == "torch seeded anew before each call"
    assert warnings_of(evaluation) == set()


@pytest.mark.parametrize("name", WRONG_DROPOUT)
def test_dropout_that_draws_other_numbers_is_wrong(judge, tmp_path, name):
    candidate = write_candidate(WRONG_DROPOUT[name], init=f"{DROPOUT['init']}\nself.mask = None")
    assert judge(candidate, SEEDED, tmp_path).outcome == "wrong_value"


def test_each_timed_call_has_a_seed_of_its_own(judge, tmp_path):
    from harness.evaluation.timing.plan import TimingPlan

    plan = TimingPlan(max_blocks=20, attempts=1)
    evaluation = judge(write_candidate(**DROPOUT), SEEDED, tmp_path, time=True, plan=plan)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing is not None
    forward = "self.calls += 1\nif self.calls > 12: torch.manual_seed(0)\nreturn self.drop(x) * 2"
    late = write_candidate(forward, init=f"{DROPOUT['init']}\nself.calls = 0")
    assert judge(late, SEEDED, tmp_path, time=True, plan=plan).outcome == "suspect"


def test_a_reference_that_draws_no_numbers_is_not_seeded_and_keeps_its_float64_truth(judge, tmp_path):
    problem = write_problem("return x * 2", settings="SEEDED_CALLS = True")
    evaluation = judge(write_candidate("return x + x"), problem, tmp_path)
    assert (evaluation.outcome, evaluation.correctness.truth) == ("correct", "float64"), evaluation.message
    assert not {"mode", "call_seeds"} & dict(evaluation.environment).keys()


def test_infinities_that_are_the_truth_are_asked_for(judge, tmp_path):
    problem = write_problem("return x.masked_fill(x < 0, float('-inf'))")
    right = judge(write_candidate("return torch.where(x < 0, float('-inf'), x)"), problem, tmp_path)
    wrong = judge(write_candidate("return torch.where(x < 0, -3e38, x)"), problem, tmp_path)
    assert (right.outcome, wrong.outcome) == ("correct", "wrong_value"), right.message


COUNTS = write_problem("return x.sum(1)", settings='DISTRIBUTIONS = ("as_given", "integers")')
HONEST_COUNTS = {
    "another order": "return x.flip(1).sum(1)",
    "float64": "return x.double().sum(1).float()",
    "a product": "return (x @ torch.ones(65, 1))[:, 0]",
    "halves": "return x[:, :32].sum(1) + x[:, 32:].sum(1)",
}


@pytest.mark.parametrize("name", HONEST_COUNTS)
def test_counts_in_any_order_are_exact(judge, tmp_path, name):
    evaluation = judge(write_candidate(HONEST_COUNTS[name]), COUNTS, tmp_path)
    assert evaluation.outcome == "correct", evaluation.message


def test_a_count_that_is_only_nearly_right_is_wrong(judge, tmp_path):
    evaluation = judge(write_candidate("return x.sum(1) * (1 + 2e-5)"), COUNTS, tmp_path)
    assert evaluation.outcome == "wrong_value"
    assert evaluation.message.endswith("(on integers inputs)")
