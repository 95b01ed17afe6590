"""A setting is a field of a frozen dataclass, declared where it is used. `option` makes it an option of commands, with
a HARNESS_ variable and a key in harness.toml. The API sets the same fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar


def option(
    default: Any,
    help: str = "",
    *names: str,
    key: str = "",
    panel: str = "",
    kind: Any = None,
    text: Any = None,
    parse: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Any:
    """A field with an option. Without `help` it is none itself, but has the value of another field's of that name.

    `key`: its name, if not the field's; `names`: as typed, if they do not follow. `panel` of `--help`: by default the
    `title` of the class. `kind`, `text`: type and default as typed, of which `parse` makes the field's value. `more`:
    of typer.Option, such as `show_envvar` for a variable that errors name.
    """
    settings = {"key": key, "panel": panel, "kind": kind, "text": text, "parse": parse}
    return field(default=default, metadata={"names": names, "help": help, "typer": more, **settings})


@dataclass(frozen=True, kw_only=True)
class RunFolders:
    title: ClassVar[str] = "Paths"

    generated_dir: Path = option(Path("generated"), "Folder of runs.", metavar="DIR")
    problems_dir: Path | None = option(
        None, "Folder of suites, searched before the shipped ones. [default: reference_models]", metavar="DIR"
    )
