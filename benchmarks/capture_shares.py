"""Shares of the time in the table of `harness capture`, beside those of torch's profiler without any hook.

Run: python benchmarks/capture_shares.py [llama] [resnet] [vit] [decoder]    with transformers and torchvision
Goal: they differ by at most 3 % of a call. Baseline: the operators that the modules consist of, in torch's profiler.
"""

from __future__ import annotations

import copy
import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from harness.capture.capture import watch_script
from harness.capture.watch import Watch

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = {name: ROOT / "benchmarks" / "models" / f"{name}.py" for name in ("llama", "resnet", "vit")}
SCRIPTS["decoder"] = ROOT / "examples" / "model" / "decoder.py"
ARGUMENTS = {"llama": ["512", "4", "256"], "resnet": ["8", "160"], "vit": ["8", "160"], "decoder": []}
# Modules that consist of one operator each, which nothing else of the model calls.
OPERATORS = {
    "llama": {"Linear": "aten::linear", "SiLUActivation": "aten::silu"},
    "resnet": {"Conv2d": "aten::conv2d", "BatchNorm2d": "aten::batch_norm", "MaxPool2d": "aten::max_pool2d"},
    "vit": {"LayerNorm": "aten::layer_norm", "GELU": "aten::gelu", "Conv2d": "aten::conv2d"},
    "decoder": {"Linear": "aten::linear", "Embedding": "aten::embedding"},
}
# Names of kernels instead of operators, where torch's profiler counts kernels twice: operators of ResNet-18 add up to
# 109 % of the time of all kernels.
KERNELS = {"aten::conv2d": re.compile("fprop|nchwToNhwc|nhwcToNchw|convolve|Memset")}
CALLS = 24
GOAL = 0.03
WHOLE = "whole call"


def find_shares(watch: Watch) -> dict[str, float]:
    """Return the shares of the table by class of modules."""
    shares: dict[str, float] = {}
    for record in watch.modules.values():
        kind = type(record.module).__name__
        shares[kind] = shares.get(kind, 0.0) + record.time_us / watch.modules[""].time_us
    return shares


def profile_plain(watch: Watch) -> dict[str, float]:
    """Return the shares of operators in calls without hooks: of a call's time, on a GPU of the time of all kernels."""
    model, (args, kwargs) = watch.modules[""].module, watch.last
    on_gpu = watch.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    total: dict[str, float] = {}
    for _ in range(CALLS // 2):
        given: Any = copy.deepcopy((args, kwargs))
        with torch.no_grad(), profile(activities=activities) as profiled:
            with nullcontext() if on_gpu else record_function(WHOLE):
                model(*given[0], **given[1])
            if on_gpu:
                torch.cuda.synchronize()
        for event in profiled.key_averages():
            time_us = event.device_time_total if on_gpu else event.cpu_time_total
            for key in name_shares(event.key, is_kernel=event.device_type == DeviceType.CUDA, on_gpu=on_gpu):
                total[key] = total.get(key, 0.0) + time_us
    return {name: time_us / total[WHOLE] for name, time_us in total.items()}


def name_shares(name: str, *, is_kernel: bool, on_gpu: bool) -> list[str]:
    """Return what the time of an event counts for."""
    if is_kernel:
        return [WHOLE, *(operator for operator, names in KERNELS.items() if names.search(name))]
    return [] if on_gpu and name in KERNELS else [name]


def main() -> None:
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # torch's profiler writes to standard error
    worst = 0.0
    print(f"{'model':10}{'modules':18}{'table':>8}{'profiler':>10}{'difference':>12}")
    for name in sys.argv[1:] or SCRIPTS:
        watch, _ = watch_script(SCRIPTS[name], ARGUMENTS[name], "net", CALLS)
        table, plain = find_shares(watch), profile_plain(watch)
        for kind, operator in OPERATORS[name].items():
            difference = table[kind] - plain[operator]
            worst = max(worst, abs(difference))
            print(f"{name:10}{kind:18}{table[kind]:8.1%}{plain[operator]:10.1%}{difference:12.1%}")
    print(f"goal {GOAL:.0%}: {'met' if worst <= GOAL else 'MISSED'}, {worst:.1%} at most")


if __name__ == "__main__":
    main()
