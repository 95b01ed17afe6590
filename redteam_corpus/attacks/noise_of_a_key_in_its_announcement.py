"""Draws the noise of a key from the announcement of a call, before the call begins.

layer: time
mechanism: Numbers among the arguments of a call may follow with the signal to begin, but not its strings.
problem: noise_of_a_key
expected: wrong_value, suspect, no_gain, unranked
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.program import Worker

ready = {}
usual = Worker.do_call


def find_text(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list):
        return next((found for one in tree if (found := find_text(one)) is not None), None)
    return tree if isinstance(tree, str) else None


def make_noise(key, shape, device):
    generator = torch.Generator(device).manual_seed(int.from_bytes(key.encode(), "little"))
    return torch.randn(shape, generator=generator, device=device)


def announced(self, message):
    key = find_text(message["tree"])
    if key is not None and "shape" in ready:
        ready["noise"] = key, make_noise(key, ready["shape"], self._device)
    return usual(self, message)


Worker.do_call = announced


class ModelNew(nn.Module):
    def forward(self, x, key):
        ready["shape"] = x.shape
        known, noise = ready.get("noise", (None, None))
        return x + (noise if known == key else make_noise(key, x.shape, x.device))
