import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest

from harness.cli.options import EvaluationPanel, PathsPanel, SandboxPanel, make_evaluate_options
from harness.cli.panels import Only, Panel, Without, expand_panels, option
from harness.pipeline.evaluate import EvaluateOptions, make_local_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class MealPanel(Panel):
    title = "Meal"

    starter: str = option("soup", "First course.")
    main: str = option("rice", "Second course.")
    dessert: str = option("cake", "Third course.")


def serve_all(*, meal: MealPanel) -> None: ...
def serve_reversed(*, meal: Annotated[MealPanel, Only("dessert", "main")]) -> None: ...
def serve_most(*, meal: Annotated[MealPanel, Without("main")]) -> None: ...


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (serve_all, ["starter", "main", "dessert"]),
        (serve_reversed, ["dessert", "main"]),
        (serve_most, ["starter", "dessert"]),
    ],
)
def test_a_command_has_the_options_that_it_chooses_from_a_panel(command, options):
    assert list(inspect.signature(expand_panels(command)).parameters) == options


def test_an_option_that_a_command_lacks_keeps_the_default_of_the_command():
    served = []

    def serve(*, meal: Annotated[MealPanel, Only("main")] = MealPanel(starter="salad", main="fish")) -> None:
        served.append(meal)

    expanded = expand_panels(serve)
    assert inspect.signature(expanded).parameters["main"].default == "fish"
    expanded(main="beans")
    assert served == [MealPanel(starter="salad", main="beans")]


@pytest.mark.parametrize(
    ("options", "first_call_s"),
    [({}, 300.0), ({"call_timeout": 600.0}, 600.0), ({"call_timeout": 600.0, "first_call_timeout": 5.0}, 5.0)],
)
def test_a_first_call_has_its_own_limit_or_that_of_calls_if_longer(options, first_call_s):
    settings = make_local_settings(make_evaluate_options(EvaluationPanel(**options), SandboxPanel(), PathsPanel()))
    assert settings.judge.limits.first_call_s == first_call_s


def test_options_have_the_defaults_of_the_api():
    assert make_evaluate_options(EvaluationPanel(), SandboxPanel(), PathsPanel()) == EvaluateOptions()
