"""Declares a setting as a field of a frozen dataclass. `option` makes it an option, a HARNESS_ variable and a key."""

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
    """Without `help` the field is no option and takes the value of another option with its name.

    `key` and `names` replace the derived name. `panel` defaults to the `title` of the class. `parse` converts the
    typed value, of type `kind` and default `text`. `more` goes to typer.Option.
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


FIRST_CALL_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Builds do not count. `first_call_s` limits the first call of programs that compile in their worker."""

    title: ClassVar[str] = "Evaluation"

    call_s: float = option(60.0, "Limit for one call.", key="call_timeout", min=0.1, metavar="SECONDS")
    first_call_s: float = option(
        None,
        "Limit for the first call in each worker of programs that compile in it. "
        "[default: 300, or --call-timeout if longer]",
        key="first_call_timeout",
        kind=float | None,
        min=0.1,
        metavar="SECONDS",
    )
    load_s: float = option(
        120.0,
        "Limit for importing and for constructing a candidate, without its builds.",
        key="load_timeout",
        min=0.1,
        metavar="SECONDS",
    )

    def __post_init__(self) -> None:
        if self.first_call_s is None:
            object.__setattr__(self, "first_call_s", max(FIRST_CALL_S, self.call_s))
