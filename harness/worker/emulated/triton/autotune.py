"""Autotuning where nothing can be measured.

A GPU runs a kernel many times with every configuration before its first result counts. Here it runs once with each of
two configurations, which differ between the orders of the sanitizer; a kernel that needs its outputs reset for that
gives wrong values here too. For compilation, configurations are tried until one compiles.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from triton.runtime.autotuner import Autotuner

from harness.worker.emulated.link import EmulatorLink

MOST_COMPILED = 8  # configurations tried until one compiles


def choose_by_order(link: EmulatorLink) -> None:
    """In the interpreter: the first configurations, the last, or random ones."""
    prune = Autotuner.prune_configs

    def choose(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        configs, order = list(prune(self, kwargs)), link.setting("order")
        if order == "descending":
            configs.reverse()
        elif order == "random":
            random.Random(link.setting("seed")).shuffle(configs)
        return configs[:2]

    _replace(choose, _run_once)


def choose_compilable() -> None:
    prune, compiled = Autotuner.prune_configs, [False]

    def choose(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        compiled[0] = False
        return list(prune(self, kwargs))[:MOST_COMPILED]

    def compile_first(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
        if compiled[0]:
            return [2.0] * 3
        call()
        compiled[0] = True
        return [1.0] * 3

    _replace(choose, compile_first)


def _replace(choose: Callable[..., list[Any]], benchmark: Callable[..., list[float]]) -> None:
    """Also a benchmark function of the candidate's."""
    Autotuner.prune_configs = choose
    Autotuner.do_bench = property(lambda _: benchmark)


def _run_once(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
    call()
    return [1.0] * 3
