"""The fast build strategy; `cpp` has the C++ that it compiles beside candidates' sources."""

from pathlib import Path


def read_cpp(name: str) -> str:
    """Begin with an empty line, which ends what precedes."""
    return "\n" + (Path(__file__).parent / "cpp" / name).read_text(encoding="utf-8")
