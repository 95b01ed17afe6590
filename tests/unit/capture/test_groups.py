"""Groups of equal modules, with time and roofline."""

import pytest
import torch
from torch import nn

from harness.capture.groups import group_modules
from harness.capture.watch import Watch
from harness.evaluation.timing.roofline import DevicePeaks


@pytest.mark.parametrize(("dtype", "factor"), [("float32", 1.0), ("bfloat16", 4.0)])
def test_products_are_compared_with_the_rate_of_their_dtype(dtype, factor):
    peaks = DevicePeaks(hardware="CPU", bandwidth_gb_s=1e9, tflops_by_dtype={"float32": 1.0, "bfloat16": 4.0})
    watch = Watch(max_calls=2)
    net = nn.Linear(64, 64, bias=False).to(getattr(torch, dtype))
    watch.attach(net)
    with torch.no_grad():
        net(torch.ones(16, 64, dtype=net.weight.dtype))
    watch.modules[""].time_us = watch.modules[""].calls = 1
    (group,) = group_modules(watch, peaks)
    assert group.roofline_us == pytest.approx(2 * 16 * 64 * 64 / factor / 1e6)
