"""Finds cases of a reference that no call reaches: a program that leaves them out would not be refused."""

import linecache
import traceback
from typing import Any

from torch import Tensor

from harness.problems.operators import COMPARING, OperatorWatch, name_operator

CONDITIONS = COMPARING | {"isnan", "isinf", "signbit"}
LIMITS = {"clamp", "clamp_min", "clamp_max"}
MOST_CHARACTERS = 60  # of a line


class ReferenceCases(OperatorWatch):  # type: ignore[no-untyped-call]
    """Watches calls: which results each comparison in the reference's file had, and whether limits changed a value."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file
        self._found: dict[tuple[int, str], set[bool]] = {}

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name = name_operator(operator)  # those in place have lost what they changed
        if not isinstance(result, Tensor) or name not in CONDITIONS | LIMITS or result.is_meta:
            return
        holds = result if name in CONDITIONS else (result != args[0]) & ~result.isnan()
        if holds.numel():
            found = self._found.setdefault((self._find_line(), name), set())
            found |= {bool(holds.any()), bool(holds.all())}

    def _find_line(self) -> int:
        frames = (frame for frame, _ in traceback.walk_stack(None) if frame.f_code.co_filename == self._file)
        frame = next(frames, None)
        return 0 if frame is None else frame.f_lineno

    def describe_unreached(self) -> list[str]:
        """Return a line for each comparison that always had the same result, and each limit that changed nothing."""
        found = []
        for (line, name), results in sorted(self._found.items()):
            text = linecache.getline(self._file, line).strip()[:MOST_CHARACTERS]
            if name in LIMITS and True not in results:
                found.append(f"line {line} ({text}): {name} changes no value")
            elif name in CONDITIONS and len(results) == 1:
                found.append(f"line {line} ({text}): {name} is {'always' if True in results else 'never'} true")
        return found
