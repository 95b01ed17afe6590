import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest

from harness.cli.panels import Only, Panel, Without, expand_panels
from harness.domain.options import option
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.search.options import SearchOptions


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
    read = []

    def measure(*, settings: EvaluateOptions) -> None:
        read.append(settings.limits.first_call_s)

    command = expand_panels(measure)
    defaults = {name: one.default for name, one in inspect.signature(command).parameters.items()}
    command(**defaults | options)
    assert read == [first_call_s]


@pytest.mark.parametrize("kind", [EvaluateOptions, GenerateOptions, SearchOptions])
def test_options_have_the_defaults_of_the_api(kind):
    read = []

    def keep(*, settings) -> None:
        read.append(settings)

    keep.__annotations__["settings"] = kind
    command = expand_panels(keep)
    command(**{name: one.default for name, one in inspect.signature(command).parameters.items()})
    assert read == [kind()]
