"""`harness` measures how well language models write fast kernels. Importing it does nothing.

For notebooks and scripts: `harness.load_results`, `harness.evaluate`, `harness.Evaluator`, `harness.improve`,
`harness.render_report`, `harness.load_claims`, `harness.apply`; see `harness.api`. They are looked up when used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
_API = ("Evaluator", "apply", "evaluate", "improve", "load_claims", "load_results", "render_report")


def __getattr__(name: str) -> Any:
    # By name: every package reads the version above, which must not import the API.
    if name in _API:
        return getattr(import_module("harness.api"), name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_API])
