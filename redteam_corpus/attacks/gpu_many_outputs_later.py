"""Returns sixty-four outputs, of which the last sixteen are computed when it has answered.

layer: time
mechanism: So many outputs are copied whole, by kernels that wait until those of the candidate are over.
problem: gpu_many_outputs
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn

torch._C._cuda_synchronize = lambda: torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def forward(self, a, b):
        width, first = b.shape[1] // 64, 3 * b.shape[1] // 4
        outputs = [torch.empty(a.shape[0], width, device=a.device) for _ in range(64)]
        for out, part in zip(outputs, (a @ b[:, :first]).chunk(48, 1)):
            out.copy_(part)
        self.own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.own):
            for out, part in zip(outputs[48:], (a @ b[:, first:]).chunk(16, 1)):
                out.copy_(part)
        return outputs
