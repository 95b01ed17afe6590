"""Programs that are the same in all but layout."""

import pytest

from harness.copies import is_reference_copy, normalise

PROGRAM = 'source = r"""\nint x;  // one\n"""\n\n\nclass ModelNew:\n    def forward(self, a):\n        return a + 1\n'
REFERENCE = "class Model(nn.Module):\n    '''Adds.'''\n\n    def forward(self, a):\n        return a + 1\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return a + 1", "return (a + 1)  # the sum"),
        ("    def forward", '    """A docstring."""\n\n    def forward'),
        ("int x;  // one", "  int   x;  /* another */\n\n"),
        ("\n\n\nclass", "\nclass"),
    ],
)
def test_layout_comments_and_docstrings_do_not_matter(old, new):
    assert old in PROGRAM
    assert normalise(PROGRAM.replace(old, new)) == normalise(PROGRAM)


@pytest.mark.parametrize(("old", "new"), [("a + 1", "a + 2"), ("int x", "int y"), ("forward", "backward")])
def test_code_matters(old, new):
    assert normalise(PROGRAM.replace(old, new)) != normalise(PROGRAM)


def test_unparsable_program_is_compared_by_words():
    assert normalise("def f(:\n  x") == normalise("def f(:  x")
    assert normalise("def f(:") != normalise("def g(:")


@pytest.mark.parametrize(
    ("program", "is_copy"),
    [
        (REFERENCE.replace("Model(", "ModelNew("), True),
        (REFERENCE.replace("Model(nn.Module)", "ModelNew(torch.nn.Module)"), True),
        (f"{REFERENCE}\n\nclass ModelNew(Model):\n    pass\n", True),
        (REFERENCE.replace("Model(", "ModelNew(").replace("a + 1", "kernel(a)"), False),
        (f"{REFERENCE}\n\nclass ModelNew(Model):\n    def forward(self, a):\n        return kernel(a)\n", False),
        ("not python at all", False),
    ],
)
def test_a_copy_of_the_reference_is_recognised(program, is_copy):
    assert is_reference_copy(program, REFERENCE) is is_copy


def test_a_program_nested_too_deeply_to_compare_is_no_copy():
    forward = f"class ModelNew:\n    def forward(self, x):\n        return x{'.abs()' * 400}\n"
    assert not is_reference_copy(forward, "class Model:\n    def forward(self, x):\n        return x.abs()\n")
