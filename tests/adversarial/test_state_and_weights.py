"""Weights and state that change between calls, training mode, and random numbers."""

import pytest
from plain_programs import find, warnings_of, write_candidate, write_problem

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


def test_weights_packed_at_construction_are_honest_and_noted(evaluate):
    evaluation = evaluate(write_candidate(**PACKED), write_problem(**LINEAR), probed=True)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "weights_packed")
    assert finding.severity == "warning"
    assert "elements wrong" in finding.evidence
    assert "times the allowed error" in finding.evidence


def test_weights_packed_at_construction_are_wrong_where_weights_are_dynamic(evaluate):
    problem = write_problem(**LINEAR, settings="DYNAMIC_WEIGHTS = True")
    evaluation = evaluate(write_candidate(**PACKED), problem)
    assert evaluation.outcome == "wrong_value"
    assert find(evaluation, "weights_packed").severity == "fatal"
    for honest in (LINEAR, PACKED_WITH_CARE):
        evaluation = evaluate(write_candidate(**honest), problem)
        assert evaluation.outcome == "correct", evaluation.message
        assert "other_weights" in [trial.distribution for trial in evaluation.correctness.trials]


@pytest.mark.parametrize(
    ("init", "reason"),
    [
        ("self.other = nn.Linear(65, 48)", "the program has no linear.weight"),
        ("self.linear = nn.Linear(65, 40)", "the program has [40, 65] float32 instead of [48, 65] float32 as linear"),
    ],
)
def test_a_wrong_value_names_the_weights_that_do_not_match(evaluate, init, reason):
    forward = "return torch.relu(next(self.children())(x))[:, :40].repeat(1, 2)[:, :48]"
    evaluation = evaluate(write_candidate(forward, init=f"torch.manual_seed(0)\n{init}"), write_problem(**LINEAR))
    assert evaluation.outcome == "wrong_value"
    assert f"; the reference's weights were not loaded: {reason}" in evaluation.message


def test_weights_that_are_all_ones_change_as_well(evaluate):
    norm = {"init": "self.norm = nn.LayerNorm(65)", "forward": "return self.norm(x)"}
    ignored = {"init": norm["init"], "forward": "return nn.functional.layer_norm(x, (65,))"}
    evaluation = evaluate(write_candidate(**ignored), write_problem(**norm))
    assert evaluation.outcome == "wrong_value"
    evaluation = evaluate(write_candidate(**norm), write_problem(**norm), probed=True)
    assert warnings_of(evaluation) == set()


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
@pytest.mark.quick(1)
def test_training_mode_is_evaluated_with_its_buffers(evaluate, forward):
    evaluation = evaluate(write_candidate(forward, init=BATCH_NORM["init"]), TRAINING)
    assert evaluation.outcome == "correct", evaluation.message
    assert "second_in_a_row" in [trial.distribution for trial in evaluation.correctness.trials]


@pytest.mark.slow
def test_batch_norm_call_counts_matter_only_if_results_depend_on_them(evaluate):
    forward = STATISTICS.replace("num_batches_tracked += 1", "num_batches_tracked += 0")
    assert evaluate(write_candidate(forward, init=BATCH_NORM["init"]), TRAINING).outcome == "correct"
    init = BATCH_NORM["init"].replace("65", "65, momentum=None")
    problem = write_problem(BATCH_NORM["forward"], init=init, settings="TRAINING = True")
    evaluation = evaluate(write_candidate(forward.replace("0.1)", "1.0)"), init=init), problem)
    assert evaluation.outcome == "wrong_value"
    assert "state norm.num_batches_tracked" in evaluation.message


@pytest.mark.parametrize("name", WRONG_TRAINING)
def test_training_without_the_references_buffers_is_wrong(evaluate, name):
    evaluation = evaluate(write_candidate(WRONG_TRAINING[name], init=BATCH_NORM["init"]), TRAINING)
    assert evaluation.outcome == "wrong_value", evaluation.message
    if name != "in_evaluation_mode":
        assert "state norm." in evaluation.message


def test_a_candidate_without_the_state_that_calls_change_is_wrong(evaluate):
    forward = "return nn.functional.batch_norm(x, None, None, training=True)"
    evaluation = evaluate(write_candidate(forward), TRAINING)
    assert evaluation.outcome == "wrong_value"
    assert "norm.running_mean" in find(evaluation, "state").message


COUNTER = {
    "init": 'self.register_buffer("steps", torch.zeros(()))',
    "forward": "self.steps += 1\nreturn x * self.steps",
}


def test_state_that_calls_change_in_evaluation_mode_is_reset_and_compared(evaluate):
    problem = write_problem(**COUNTER)
    assert evaluate(write_candidate(**COUNTER), problem).outcome == "correct"
    still = {**COUNTER, "forward": "return x * (self.steps + 1)"}
    evaluation = evaluate(write_candidate(**still), problem)
    assert evaluation.outcome == "wrong_value"
    assert "state steps" in evaluation.message


FORMS = {
    "init": """
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("share", torch.tensor(0.5))
        self.register_buffer("turned", torch.randn(65, 64).t())
        self.register_buffer("seen", torch.zeros(64, dtype=torch.bool))
        whole = torch.randn(4, 65)
        self.register_buffer("first", whole[0])
        self.register_buffer("last", whole[3])
        self.norms = nn.ModuleList(nn.BatchNorm1d(65) for _ in range(60))
    """.replace("        ", "").strip(),
    "forward": """
        self.steps += 1
        self.share.mul_(0.75)
        self.turned.mul_(0.5).add_(x)
        self.seen |= x[:, 0] > 0
        self.first.add_(x[0])
        self.last.mul_(0.5).add_(self.first)
        for norm in self.norms: x = norm(x)
        return x * self.share + self.turned + self.last * self.steps
    """.replace("        ", "").strip(),
}


@pytest.mark.slow
def test_state_of_many_tensors_and_all_forms_is_given_to_each_call(evaluate):
    from harness.evaluation.settings import TimingPlan

    problem = write_problem(**FORMS, settings="TRAINING = True")
    plan = TimingPlan(min_blocks=3, max_blocks=5, budget_s=1.0, attempts=1)
    evaluation = evaluate(write_candidate(**FORMS), problem, time=True, plan=plan)
    assert evaluation.outcome == "correct", evaluation.message
    assert {"second_in_a_row", "given_state"} <= {trial.distribution for trial in evaluation.correctness.trials}
    assert evaluation.timing.blocks[0].baseline_loading_us > 0
    forgetful = FORMS["forward"].replace("self.share.mul_(0.75)", "self.share.fill_(0.375)")
    assert evaluate(write_candidate(forgetful, init=FORMS["init"]), problem).outcome == "wrong_value"


def test_a_candidate_that_changes_weights_that_the_reference_leaves_alone_is_wrong(evaluate):
    forward = "self.linear.weight.mul_(1 + 1e-7)\nreturn torch.relu(self.linear(x))"
    evaluation = evaluate(write_candidate(forward, init=LINEAR["init"]), write_problem(**LINEAR))
    assert evaluation.outcome == "wrong_value"
    assert find(evaluation, "nondeterministic") or "linear.weight" in find(evaluation, "state").message


def test_a_weight_that_is_not_read_must_be_left_alone_too(evaluate):
    forward = "out = torch.relu(self.linear(x))\nself.spare.add_(1)\nreturn out"
    init = f"{LINEAR['init']}\nself.spare = nn.Parameter(torch.zeros(3))"
    problem = write_problem(init=init, forward=LINEAR["forward"])
    evaluation = evaluate(write_candidate(forward, init=init), problem)
    assert evaluation.outcome == "wrong_value"
    assert "calls changed the weight spare" in find(evaluation, "state").message
    assert "3 of 3 elements differ, by up to " in find(evaluation, "state").message


@pytest.mark.slow
def test_every_timed_call_begins_with_the_same_state(evaluate):
    from harness.evaluation.settings import TimingPlan

    plan = TimingPlan(max_blocks=20, attempts=1)
    evaluation = evaluate(write_candidate(**COUNTER), write_problem(**COUNTER), time=True, plan=plan)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing is not None


DROPOUT = {"init": "self.drop = nn.Dropout(0.5)", "forward": "return self.drop(x) * 2"}

SEEDED = write_problem(**DROPOUT, settings="TRAINING = True\nSEEDED_CALLS = True")

WRONG_DROPOUT = {
    "left out": "return x * 2",
    "of another seed": "torch.manual_seed(0)\nreturn self.drop(x) * 2",
    "of the first call": "if self.mask is None: self.mask = self.drop(torch.ones_like(x)) * 2\nreturn x * self.mask",
    "drawn in another order": "torch.rand(1)\nreturn self.drop(x) * 2",
}


def test_dropout_draws_the_same_numbers_in_reference_and_candidate(evaluate):
    evaluation = evaluate(write_candidate("return 2 * self.drop(x)", init=DROPOUT["init"]), SEEDED, probed=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.correctness.truth == "reference"
    assert dict(evaluation.environment)["mode"] == "training"
    assert dict(evaluation.environment)["call_seeds"] == "torch seeded anew before each call"
    assert warnings_of(evaluation) == set()


@pytest.mark.parametrize("name", WRONG_DROPOUT)
def test_dropout_that_draws_other_numbers_is_wrong(evaluate, name):
    candidate = write_candidate(WRONG_DROPOUT[name], init=f"{DROPOUT['init']}\nself.mask = None")
    assert evaluate(candidate, SEEDED).outcome == "wrong_value"


@pytest.mark.slow
def test_each_timed_call_has_a_seed_of_its_own(evaluate):
    from harness.evaluation.settings import TimingPlan

    plan = TimingPlan(max_blocks=20, attempts=1)
    evaluation = evaluate(write_candidate(**DROPOUT), SEEDED, time=True, plan=plan)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing is not None
    untimed = len(evaluation.correctness.trials) + 5
    forward = f"self.calls += 1\nif self.calls > {untimed}: torch.manual_seed(0)\nreturn self.drop(x) * 2"
    late = write_candidate(forward, init=f"{DROPOUT['init']}\nself.calls = 0")
    assert evaluate(late, SEEDED, time=True, plan=plan).outcome == "suspect"


def test_reference_without_random_numbers_keeps_its_float64_truth(evaluate):
    problem = write_problem("return x * 2", settings="SEEDED_CALLS = True")
    evaluation = evaluate(write_candidate("return x + x"), problem)
    assert (evaluation.outcome, evaluation.correctness.truth) == ("correct", "float64"), evaluation.message
    assert not {"mode", "call_seeds"} & dict(evaluation.environment).keys()
