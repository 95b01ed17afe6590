"""Replaces autotuning, since times mean nothing on the emulated device.

An interpreted kernel runs once with each of two configurations, which differ between the orders of the sanitizer, so a
kernel that needs `reset_to_zero` gives wrong values without it, as on a GPU. When kernels are only compiled,
configurations are tried until one compiles, or all are.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from triton.runtime.autotuner import Autotuner

from harness.worker.emulated.link import EmulatorLink

TRIED_S = 60.0  # for configurations that do not compile


def choose_by_order(link: EmulatorLink) -> None:
    prune = Autotuner.prune_configs

    def choose(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        configs, order = list(prune(self, kwargs)), link.setting("order")
        if order == "descending":
            configs.reverse()
        elif order == "random":
            random.Random(link.setting("seed")).shuffle(configs)
        return configs[:2]

    _replace(choose, _run_once)


def choose_compilable(*, compiles_all: bool) -> None:
    prune, compiled, began_s = Autotuner.prune_configs, [False], [0.0]

    def choose(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        compiled[0], began_s[0] = False, time.monotonic()
        return list(prune(self, kwargs))

    def compile_first(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
        if compiled[0] or time.monotonic() - began_s[0] > TRIED_S:
            return [2.0] * 3
        call()
        compiled[0] = not compiles_all
        return [1.0] * 3

    _replace(choose, compile_first)


def _replace(choose: Callable[..., list[Any]], benchmark: Callable[..., list[float]]) -> None:
    """The candidate may define the benchmark function, too."""
    Autotuner.prune_configs = choose
    Autotuner.do_bench = property(lambda _: benchmark)


def _run_once(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
    call()
    return [1.0] * 3
