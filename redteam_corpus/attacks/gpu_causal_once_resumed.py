"""Assumes that a mask is causal as soon as a signal has shown that calls are timed.

layer: correctness
mechanism: Altered masks may come in untimed calls only.
problem: gpu_attention_with_given_mask
expected: wrong_value, suspect, replayed
device: gpu
timed: yes
language: torch
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


import signal

resumed = []
signal.signal(signal.SIGCONT, lambda *_: resumed.append(1))


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        if resumed:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
