import inspect
from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer

from harness.cli.options import Only, Panel, Without, expand_panels
from harness.domain.options import option
from harness.generate.options import GenerateOptions
from harness.pipeline.options import EvaluateOptions
from harness.search.strategy import SearchOptions


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
def test_first_call_limit_is_separate_or_that_of_calls_if_longer(options, first_call_s):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OvenSettings:
    title = "Oven"

    heat_c: float = option(180.0, "Temperature.", key="heat", min=0.0)
    fan: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KitchenSettings(MealPanel):
    oven: OvenSettings = field(default_factory=OvenSettings)
    covers: tuple[str, ...] = option((), "Guests.", kind=str, text="", parse=lambda names: tuple(names.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class BillSettings:
    starter: str = option("")
    main: str = "none"


def test_a_setting_is_declared_in_one_place(monkeypatch):
    """An inherited field, one of a nested setting and a parsed one, from the command line, a variable and the file."""
    served = []

    def serve(*, kitchen: KitchenSettings) -> None:
        served.append(kitchen)

    app = typer.Typer()
    app.command()(expand_panels(serve))
    monkeypatch.setenv("HARNESS_HEAT", "220")
    defaults = {"main": "beans"}
    typer.main.get_command(app).main(["--covers", "ann bob"], default_map=defaults, standalone_mode=False)
    assert served == [KitchenSettings(main="beans", oven=OvenSettings(heat_c=220.0), covers=("ann", "bob"))]


def test_an_option_of_two_settings_is_given_once_and_reaches_both():
    served = []

    def serve(*, meal: MealPanel, bill: BillSettings) -> None:
        served.append((meal, bill))

    command = expand_panels(serve)
    assert list(inspect.signature(command).parameters) == ["starter", "main", "dessert"]
    command(starter="salad", main="fish", dessert="none")
    assert served == [(MealPanel(starter="salad", main="fish", dessert="none"), BillSettings(starter="salad"))]
