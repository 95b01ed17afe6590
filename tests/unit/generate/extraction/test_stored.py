import pytest

from harness.domain import Candidate, Completion, Sample, SampleKey
from harness.generate.extraction.extractor import reextract

PROGRAM = "class ModelNew:\n    x = 1\n"
OTHER = "class ModelNew:\n    x = 2\n"
FENCED = f"```python\n{PROGRAM}```\n"


def make_sample(text, candidate, rule="fence"):
    return Sample(
        key=SampleKey(run="r", problem="p", sample=0),
        model="m",
        prompt="plain",
        suite="core",
        language="cpp",
        completion=None if text is None else Completion(text=text),
        candidate=candidate and Candidate(source=candidate, language="cpp", rule=rule),
    )


@pytest.mark.parametrize(
    ("text", "candidate", "rule", "kinds"),
    [
        (FENCED, PROGRAM, "fence", []),
        (FENCED, PROGRAM, "bare_file", ["rule"]),
        (FENCED, OTHER, "fence", ["other"]),
        (FENCED, None, "", ["found"]),
        ("no program", PROGRAM, "fence", ["lost"]),
        ("no program", None, "", []),
        (None, PROGRAM, "fence", []),
        ("no program", PROGRAM, "imported", []),
        ("no program", PROGRAM, "file", []),
    ],
)
def test_each_difference_between_stored_and_extracted_has_its_kind(text, candidate, rule, kinds):
    assert [change.kind for change in reextract([make_sample(text, candidate, rule)])] == kinds


def test_a_change_says_which_rules_and_how_many_lines():
    (change,) = reextract([make_sample(FENCED, OTHER, "loose_fence")])
    assert change.reason == "loose_fence -> fence: 1 lines added, 1 removed"
    assert "-    x = 2" in change.diff()
    assert "+    x = 1" in change.diff()
