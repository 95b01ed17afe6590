import pytest

from harness.evaluation.model_construction import find_load_error


@pytest.mark.parametrize("source", ["class ModelNew: ...", "ModelNew = make()", "from x import y as ModelNew"])
def test_a_program_that_may_define_its_entry_point_is_built_and_run(source):
    assert find_load_error(source) is None


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("class Model: ...", "the program defines no class ModelNew"),
        ("", "the program defines no class ModelNew"),
        ("class ModelNew:\n  def f(:", "SyntaxError: invalid syntax (line 2: def f(:)"),
    ],
)
def test_load_error_is_reported_before_builds(source, error):
    assert find_load_error(source) == error
