"""What counts as the right values: near misses, exact numbers, and calls or references that do not repeat."""

import pytest
from plain_programs import find, write_candidate, write_problem

# A scale of every element: inside and outside of what each format allows (see allowed_errors.py).
NEAR_MISSES = {
    "float64": (0.9e-11, 1.2e-11),
    "float32": (0.5e-6, 1.5e-6),
    "float16": (0.4e-3, 0.8e-3),
    "bfloat16": (0.3e-2, 0.6e-2),
    "complex64": (0.5e-6, 1.5e-6),
}


@pytest.mark.parametrize("dtype", NEAR_MISSES)
@pytest.mark.parametrize("side", ["inside", "outside"])
@pytest.mark.quick(2)
def test_a_near_miss_is_told_from_a_hit(evaluate, dtype, side):
    scale = NEAR_MISSES[dtype][side == "outside"]
    wide = "complex128" if dtype == "complex64" else "float64"
    problem = write_problem("return x * 3", inputs=f"[torch.randn(64, 65, dtype=torch.{dtype})]")
    forward = f"return (x.to(torch.{wide}) * (3 * (1 + {scale}))).to(torch.{dtype})"
    evaluation = evaluate(write_candidate(forward), problem)
    assert evaluation.outcome == ("correct" if side == "inside" else "wrong_value"), evaluation.message


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
def test_whole_numbers_are_wrong_by_one_in_one_place(evaluate, dtype):
    problem = write_problem("return x.clone()", inputs=f"[torch.randint(0, 2, (64, 65)).to(torch.{dtype})]")
    right = evaluate(write_candidate("return x + 0 if x.dtype != torch.bool else ~~x"), problem)
    wrong = evaluate(write_candidate("out = x.clone()\nout[63, 64] = 1 - out[63, 64].int()\nreturn out"), problem)
    assert right.outcome == "correct", right.message
    assert wrong.outcome == "wrong_value"
    assert "1 of 4160 elements wrong; at [63, 64]" in wrong.message


JITTER = "return x * 3 * (1 + 1e-6 * torch.rand(65, generator=self.random))"

OWN_RANDOM = "self.random = torch.Generator()\nself.random.seed()"

DETERMINISTIC = write_problem("return x * 3", settings="DETERMINISTIC = True")


def test_declared_deterministic_calls_must_agree_bitwise(evaluate):
    evaluation = evaluate(write_candidate(JITTER, init=OWN_RANDOM), DETERMINISTIC)
    assert evaluation.outcome == "wrong_value"
    finding = find(evaluation, "nondeterministic")
    assert finding.severity == "fatal"
    assert "of 4160 elements differ, by up to " in finding.message
    assert "DETERMINISTIC = True" in finding.message
    assert evaluation.correctness.trials[-1].distribution == "again"
    assert evaluation.correctness.trials[-1].mismatched > 1000


def test_elsewhere_calls_may_differ_within_the_tolerance_which_is_noted(evaluate):
    problem = write_problem("return x * 3")
    evaluation = evaluate(write_candidate(JITTER, init=OWN_RANDOM), problem)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "nondeterministic")
    assert finding.severity == "note"
    assert "of 4160 elements differ, by up to " in finding.message
    wrong = JITTER.replace("1e-6", "(1e-2 if self.calls == 4 else 0.0)")
    counted = f"self.calls += 1\n{wrong}"
    evaluation = evaluate(write_candidate(counted, init=f"{OWN_RANDOM}\nself.calls = 0"), problem)
    assert evaluation.outcome == "wrong_value"


def test_repeating_the_last_answer_does_not_hide_that_calls_differ(evaluate):
    forward = f"""
if self.last is None or not torch.equal(self.last[0], x):
    self.last = x.clone(), self.compute(x)
return self.last[1].clone()

    def compute(self, x):
        {JITTER}
"""
    source = write_candidate(forward, init=f"{OWN_RANDOM}\nself.last = None").replace("            def", "    def")
    evaluation = evaluate(source.replace("                return x", "        return x"), DETERMINISTIC)
    assert find(evaluation, "nondeterministic") is not None, evaluation.message


BAD_REFERENCES = {
    "beyond its own tolerance": ("return x + torch.rand(65)", "", "differ by more than"),
    "NaN throughout": ("return x * float('nan')", "", "is all NaN"),
    "overflowing": ("return (x * 60).exp().log()", "", "where float64 is finite"),
    "too large": ("return x.repeat(1 << 20, 1 << 10).sum()", "", "needs more memory than there is"),
    "too large at once": ("return torch.zeros(1 << 45).sum() + x", "", "needs more memory than there is"),
}


@pytest.mark.parametrize("name", BAD_REFERENCES)
@pytest.mark.quick(2)
def test_invalid_reference_is_a_problem_error_and_the_evaluator_continues(evaluate, name):
    forward, settings, message = BAD_REFERENCES[name]
    evaluation = evaluate(write_candidate("return x * 2"), write_problem(forward, settings=settings))
    assert evaluation.outcome == ("not_run" if name.startswith("too large") else "problem_error")
    assert evaluation.message.startswith("mine/toy.py: ")
    assert message in evaluation.message
    assert evaluate(write_candidate("return x * 2"), write_problem("return x * 2")).outcome == "correct"


VARYING = "return x * 3 * (1 + 1e-6 * torch.rand(65))"


@pytest.mark.parametrize("settings", ["", "DETERMINISTIC = True"])
def test_nondeterministic_reference_is_a_note_and_allows_the_same_of_candidates(evaluate, settings):
    problem = write_problem(VARYING, settings=settings)
    for candidate in (write_candidate("return x * 3"), write_candidate(JITTER, init=OWN_RANDOM)):
        evaluation = evaluate(candidate, problem)
        assert evaluation.outcome == "correct", evaluation.message
        finding = find(evaluation, "reference_varies")
        assert finding.severity == "note"
        assert "of 4160 elements differ, by up to " in finding.message
    assert evaluate(write_candidate("return x * 3.001"), problem).outcome == "wrong_value"


def test_infinities_that_are_the_truth_are_asked_for(evaluate):
    problem = write_problem("return x.masked_fill(x < 0, float('-inf'))")
    right = evaluate(write_candidate("return torch.where(x < 0, float('-inf'), x)"), problem)
    wrong = evaluate(write_candidate("return torch.where(x < 0, -3e38, x)"), problem)
    assert (right.outcome, wrong.outcome) == ("correct", "wrong_value"), right.message


COUNTS = write_problem("return x.sum(1)", settings='DISTRIBUTIONS = ("as_given", "integers")')

HONEST_COUNTS = {
    "another order": "return x.flip(1).sum(1)",
    "float64": "return x.double().sum(1).float()",
    "a product": "return (x @ torch.ones(65, 1))[:, 0]",
    "halves": "return x[:, :32].sum(1) + x[:, 32:].sum(1)",
}


@pytest.mark.parametrize("name", HONEST_COUNTS)
@pytest.mark.quick(2)
def test_counts_in_any_order_are_exact(evaluate, name):
    evaluation = evaluate(write_candidate(HONEST_COUNTS[name]), COUNTS)
    assert evaluation.outcome == "correct", evaluation.message


def test_a_count_that_is_only_nearly_right_is_wrong(evaluate):
    evaluation = evaluate(write_candidate("return x.sum(1) * (1 + 3e-7)"), COUNTS)
    assert evaluation.outcome == "wrong_value"
    assert evaluation.message.endswith("(on integers inputs)")
