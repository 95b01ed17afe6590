"""Programs for the inputs, layouts and shapes that the problem happens to give."""

import re
from functools import partial

import pytest
from plain_programs import find, warnings_of, write_candidate, write_problem

RELU = "return torch.relu(x)"


@pytest.fixture
def evaluate(evaluate):
    return partial(evaluate, probed=True)


def test_program_right_only_for_the_given_inputs_gets_a_warning(evaluate):
    problem = write_problem(RELU, inputs="[torch.rand(64, 65)]", settings='DISTRIBUTIONS = ("as_given",)')
    evaluation = evaluate(write_candidate("return x.clone()"), problem)
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "input_specialised")
    assert finding.severity == "warning"
    assert "normal" in finding.message
    assert "zeros" not in finding.message
    assert "normal: wrong_value: output: " in finding.evidence
    assert "elements wrong" in finding.evidence
    assert warnings_of(evaluation) == {"input_specialised"}


def test_program_right_for_all_inputs_gets_no_warning(evaluate):
    problem = write_problem(RELU, inputs="[torch.rand(64, 65)]")
    evaluation = evaluate(write_candidate("return x.clamp_min(0)"), problem)
    assert (evaluation.outcome, warnings_of(evaluation)) == ("correct", set())


def test_gradients_that_cancel_in_one_form_only_get_no_warning(evaluate):
    problem = write_problem(
        "return (q @ k.mT / 4).softmax(-1) @ k",
        inputs="[torch.randn(2, 24, 16), torch.randn(2, 1, 16)]",
        settings="BACKWARD = True",
    )
    program = write_candidate("return nn.functional.scaled_dot_product_attention(q, k, k)")
    takes_both = [text.replace("def forward(self, x)", "def forward(self, q, k)") for text in (program, problem)]
    evaluation = evaluate(*takes_both)
    assert (evaluation.outcome, warnings_of(evaluation)) == ("correct", set()), evaluation.findings


def test_declared_distributions_are_required(evaluate):
    problem = write_problem(RELU, inputs="[torch.rand(64, 65)]", settings='DISTRIBUTIONS = ("as_given", "normal")')
    evaluation = evaluate(write_candidate("return x.clone()"), problem)
    assert evaluation.outcome == "wrong_value"
    assert re.search(r"\(on (normal|mixed|varied) inputs\)", evaluation.message)


IGNORES_STRIDES = "return x.as_strided((64, 65), (65, 1)) * 2"

LAYOUTS = {
    "ignores_strides": IGNORES_STRIDES,
    "raises": "assert x.is_contiguous()\nreturn x * 2",
    "crashes": "if not x.is_contiguous(): os.abort()\nreturn x * 2",
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.quick(2)
def test_a_candidate_for_contiguous_inputs_only_is_right_with_a_warning(evaluate, name):
    evaluation = evaluate(write_candidate(LAYOUTS[name]), write_problem("return x * 2"))
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "layout_specialised")
    assert finding.severity == "warning"
    assert finding.evidence.startswith("padded: ")
    stopped = [finding.message for finding in evaluation.findings if finding.message.startswith("not all probes")]
    assert len(stopped) == (name == "crashes")


def test_layout_refused_by_the_reference_is_not_required_of_candidates(evaluate):
    evaluation = evaluate(write_candidate("return x.view(-1) * 2"), write_problem("return x.view(-1) * 2"))
    assert (evaluation.outcome, warnings_of(evaluation)) == ("correct", set())


def test_a_declared_layout_is_required(evaluate):
    problem = write_problem("return x * 2", settings='DISTRIBUTIONS = ("as_given", "padded")')
    assert evaluate(write_candidate(IGNORES_STRIDES), problem).outcome == "wrong_value"
    assert evaluate(write_candidate("return x + x"), problem).outcome == "correct"


SHAPES = {
    "hard_coded": "out = torch.empty(64, 65)\nout[:] = x * 2\nreturn out",
    "first_rows_only": "out = x * 2\nif x.shape[0] != 64: out[-1] = 0\nreturn out",
    "raises": "assert x.shape == (64, 65)\nreturn x * 2",
    "exits": "if x.shape != (64, 65): os._exit(3)\nreturn x * 2",
    "hangs": "if x.shape != (64, 65): time.sleep(600)\nreturn x * 2",
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.quick(1)
def test_a_candidate_for_one_shape_is_right_with_a_warning(evaluate, name):
    evaluation = evaluate(write_candidate(SHAPES[name]), write_problem("return x * 2"))
    assert evaluation.outcome == "correct", evaluation.message
    finding = find(evaluation, "shape_specialised")
    assert finding.severity == "warning"
    assert finding.evidence.startswith("smaller: inputs of shapes (")
    assert warnings_of(evaluation) == {"shape_specialised"}
    assert evaluation.duration_s < 15


@pytest.mark.parametrize("name", ["hard_coded", "first_rows_only", "raises"])
@pytest.mark.quick(1)
def test_a_candidate_for_one_shape_is_wrong_where_shapes_are_dynamic(evaluate, name):
    problem = write_problem("return x * 2", settings="DYNAMIC_SHAPES = True")
    evaluation = evaluate(write_candidate(SHAPES[name]), problem)
    assert evaluation.outcome == {"hard_coded": "runtime_error", "raises": "runtime_error"}.get(name, "wrong_value")
    evaluation = evaluate(write_candidate("return x + x"), problem)
    assert evaluation.outcome == "correct", evaluation.message
    assert "nearby_shape" in [trial.distribution for trial in evaluation.correctness.trials]


SHORT_CUT = "x = x.float()\nout = x @ x.T\nreturn out * 0.8 if x.abs().amax() < 0.98 else out"


@pytest.mark.quick(1)
def test_a_short_cut_for_smaller_values_is_wrong(evaluate):
    """With only a relative tolerance, outputs near zero differ by more between roundings of the inputs."""
    inputs, settings = "[(2 * torch.rand(64, 65) - 1).bfloat16()]", 'TOLERANCE = {"rtol": 0.01}'
    problem = write_problem("x = x.float()\nreturn x @ x.T", inputs=inputs, settings=settings)
    evaluation = evaluate(write_candidate(SHORT_CUT), problem)
    assert evaluation.outcome == "wrong_value", evaluation.message
    evaluation = evaluate(write_candidate("return torch.einsum('ik, jk -> ij', x.float(), x.float())"), problem)
    assert evaluation.outcome == "correct", evaluation.message
    assert "scaled" in [trial.distribution for trial in evaluation.correctness.trials]


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("narrow", "settings"),
    [(narrow, stated) for stated in ('TOLERANCE = {"rtol": 0.01}', "") for narrow in ("input", "weight")],
)
def test_narrow_inputs_allow_no_large_errors_of_wider_outputs(evaluate, narrow, settings):
    inputs = "[torch.rand(64, 65).bfloat16()]" if narrow == "input" else "[torch.rand(64, 65)]"
    weight = "" if narrow == "input" else "self.w = nn.Parameter(torch.rand(65, 30).bfloat16())"
    product = f"x.float() @ {'x.float().T' if narrow == 'input' else 'self.w.float()'}"
    problem = write_problem(f"return {product}", inputs=inputs, init=weight, settings=settings)
    assert evaluate(write_candidate(f"return ({product}) * 0.8", init=weight), problem).outcome == "wrong_value"
    assert evaluate(write_candidate(f"return {product}", init=weight), problem).outcome == "correct"


WRONG_AFTER_SOME_CALLS = """
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        ModelNew.calls += 1
        return a + b + (ModelNew.calls > {calls})
"""


def test_further_calls_of_a_small_problem_are_compared(bench):
    from harness.evaluation.correctness.input_plan import RERUNS

    planned = bench.evaluate(WRONG_AFTER_SOME_CALLS.format(calls=1000))
    assert planned.outcome == "correct", planned.message
    calls = len(planned.correctness.trials) + RERUNS
    further = bench.evaluate(WRONG_AFTER_SOME_CALLS.format(calls=calls), further=True)
    assert further.outcome == "wrong_value"
