"""Returns host memory as a tensor of the device, and has a thread copy the result there.

layer: time
mechanism: To torch it is a tensor on the device like any other; the copy engine fills it when all else has been
    waited for.
problem: gpu_short_add
expected: wrong_value, suspect, no_gain, unranked, runtime_error
device: gpu
timed: yes
"""

import threading

import torch
from torch import nn


class Place:
    def __init__(self, host, like):
        self.host = host
        self.__cuda_array_interface__ = {
            "shape": tuple(like.shape), "typestr": "<f4", "data": (host.data_ptr(), False), "version": 3,
        }


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()
        self.index = 0
        self.places = []

    def fill(self, host, a, b):
        with torch.cuda.stream(self.own), torch.no_grad():
            host.copy_(a + b, non_blocking=True)

    def forward(self, a, b):
        if not self.places:
            self.places = [Place(torch.empty(a.shape, device="cpu").pin_memory(), a) for _ in range(8)]
        self.index += 1
        place = self.places[self.index % 8]
        threading.Thread(target=self.fill, args=(place.host, a, b)).start()
        return torch.as_tensor(place, device=a.device)
