"""The tables of kinds of inputs in the documentation."""

from pathlib import Path

import pytest

from harness.problems.inputs.kinds import DECLARED, DERIVED

PAGE = (Path(__file__).parents[4] / "docs" / "correctness.md").read_text(encoding="utf-8")


def read_table(header):
    lines = PAGE[PAGE.index(header) :].partition("\n\n")[0].splitlines()
    return lines[2:]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("| distribution | floating-point inputs |", [f"| `{kind.name}` | {kind.text} |" for kind in DECLARED]),
        (
            "| kind | used if | change of the inputs | detects |",
            [f"| `{kind.name}` | {kind.used_if} | {kind.text} | {kind.detects} |" for kind in DERIVED],
        ),
    ],
)
def test_the_table_of_kinds_is_that_of_the_documentation(header, rows):
    assert read_table(header) == rows
