"""The tables of kinds of inputs in the documentation."""

import re
from pathlib import Path

import pytest

from harness.problems.inputs.kinds import DECLARED, DERIVED

PAGE = (Path(__file__).parents[4] / "docs" / "inputs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("header", "kinds"), [("| distribution |", DECLARED), ("| kind | used if |", DERIVED)])
def test_the_documentation_has_a_row_for_each_kind(header, kinds):
    _, _, *rows = PAGE[PAGE.index(header) :].partition("\n\n")[0].splitlines()
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert names == [kind.name for kind in kinds]
