"""Panels of `--help`: a parameter whose type is a panel stands for the options of that panel.

def prune(paths: Annotated[PathsPanel, Only("cache_dir")]) -> None: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import field, fields, replace
from inspect import Parameter
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import typer


class Panel:
    """A frozen dataclass. Each field is an option, also set in harness.toml and, unless disabled, by HARNESS_<NAME>."""

    __slots__ = ()
    title: ClassVar[str] = "Options"
    has_variables: ClassVar[bool] = True


def option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """A field of a panel. `names`: if they do not follow from the field's name; `more`: arguments of typer.Option, such
    as `show_envvar` for a variable that errors name."""
    return field(default=default, metadata={"names": names, "help": help, **more})


class Only(tuple[str, ...]):
    """The options of a panel that a command has, in this order."""

    def __new__(cls, *names: str) -> Only:
        return super().__new__(cls, names)

    def choose(self, known: list[str]) -> list[str]:
        return list(self)


class Without(Only):
    """The options of a panel that a command lacks."""

    def choose(self, known: list[str]) -> list[str]:
        return [name for name in known if name not in self]


def expand_panels(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options as parameters, as typer expects it. A panel as default value gives other defaults."""
    signature = inspect.signature(command, eval_str=True)
    parameters: list[Parameter] = []
    panels: dict[str, tuple[Any, list[str]]] = {}
    for parameter in signature.parameters.values():
        kind, *choice = get_args(parameter.annotation) or [parameter.annotation]
        if not (isinstance(kind, type) and issubclass(kind, Panel)):
            parameters.append(parameter)
            continue
        defaults: Any = kind() if parameter.default is Parameter.empty else parameter.default
        known = [one.name for one in fields(defaults)]
        names = choice[0].choose(known) if choice else known
        panels[parameter.name] = defaults, names
        parameters += _make_parameters(defaults, names)

    @functools.wraps(command)
    def run(**values: Any) -> None:
        filled = {
            panel: replace(defaults, **{name: values.pop(name) for name in names})
            for panel, (defaults, names) in panels.items()
        }
        command(**values, **filled)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _make_parameters(defaults: Any, names: list[str]) -> list[Parameter]:
    types = get_type_hints(type(defaults))
    settings = {one.name: dict(one.metadata) for one in fields(defaults)}
    return [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=getattr(defaults, name),
            annotation=Annotated[types[name], _make_option(name, type(defaults), **settings[name])],
        )
        for name in names
    ]


def _make_option(field_name: str, panel: type[Panel], *, names: tuple[str, ...], **more: Any) -> Any:
    variable = f"HARNESS_{field_name.upper()}" if panel.has_variables else None
    return typer.Option(*names, **{"envvar": variable, "show_envvar": False, "rich_help_panel": panel.title, **more})
