"""Leaves operators that a source does not name out of torch's headers."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

# Headers that list all operators. Headers that use some include these, given the macro.
_LISTS = ("ATen/Functions.h", "ATen/NativeFunctions.h")
NARROW, ALL_OPERATORS = "narrow/", "operators.h"
MACRO = "AT_PER_OPERATOR_HEADERS"
_OPERATOR = re.compile(r"^#include <(ATen/ops/(\w+)\.h)>$", re.MULTILINE)


def find_torch_headers() -> Path:
    import torch

    return Path(torch.__file__).absolute().parent / "include"


def write_narrow_lists(folder: Path, include: Path | None = None, *, all_operators: bool = False) -> None:
    """Write torch's lists, read from `include` or the installed torch, without operators to the folder `NARROW`."""
    include = include or find_torch_headers()
    texts = {name: (include / name).read_text(encoding="utf-8") for name in _LISTS}
    for name, text in texts.items():
        path = folder / NARROW / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_drop_unused_operators(text))
    if all_operators:
        lines = (found[0] for text in texts.values() for found in _OPERATOR.finditer(text))
        (folder / NARROW / ALL_OPERATORS).write_text("\n".join(lines))


def narrow_operators(folder: Path, words: Iterable[str], include: Path | None = None) -> str:
    """Return flags that declare the operators a source with these words may call, given lists in `folder`."""
    include = include or find_torch_headers()
    headers = (f"ATen/ops/{word}.h" for word in sorted(words))
    named = "".join(f" -include {name}" for name in headers if (include / name).exists())
    return f"-I{shlex.quote(f'{folder}/{NARROW}')} -D{MACRO}{named}"


def _drop_unused_operators(header: str) -> str:
    used = frozenset(re.findall(r"\bat::(\w+)\(", header))
    return _OPERATOR.sub(lambda found: found[0] if found[2] in used else "", header)
