"""Turns and their rendered feedback, as the tests of this folder share them."""

from pathlib import Path

import pytest

from harness.domain import BuildSummary, Problem
from harness.generate.prompting import render_feedback
from harness.search.feedback import make_feedback
from harness.search.history import History, Turn

PROMPTS = Path(__file__).resolve().parents[3] / "prompts"


@pytest.fixture(scope="session")
def turn_of(evaluation_of):
    """A turn that ended as `outcome`, optionally timed."""

    def make(number=0, outcome="correct", speedup=None, *, source="x = 1\n", log="", parent=None, **changes):
        names = {"same_as", "is_copy", "tokens", "usd", "measurements"} & changes.keys()
        more = {name: changes.pop(name) for name in names}
        spread = changes.pop("spread", 0.1)
        if log:
            changes["build"] = BuildSummary(keys=("k",), cached=False, duration_s=1.0, strategy="plain", log=log)
        evaluation = evaluation_of(outcome, speedup, spread=spread, turn=number, extra=changes)
        parent = number - 1 if parent is None and number else parent
        return Turn(number=number, evaluation=evaluation, source=source, parent=parent, **more)

    return make


@pytest.fixture(scope="session")
def history_of():
    return lambda *turns: History(turns=tuple(turns))


@pytest.fixture(scope="session")
def tell():
    """The text of one feedback."""
    problem = Problem(name="add", suite="core", source="class Model: pass\n")

    def make(feedback, prompt="plain", language="cpp", prompts_dir=PROMPTS, **how):
        return render_feedback(feedback, problem, prompt=prompt, language=language, prompts_dir=prompts_dir, **how)

    return make


@pytest.fixture(scope="session")
def render(tell):
    """The text that a model gets about a turn."""

    def make(turn, history=None, hidden=(), **how):
        return tell(make_feedback(turn, history or History(turns=(turn,)), hidden), **how)

    return make
