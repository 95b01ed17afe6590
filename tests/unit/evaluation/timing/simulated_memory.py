"""A program whose memory is that of this process, with work of others and of its own."""

from types import SimpleNamespace

import torch

from harness.protocol.tensor_layout import TensorSpec

ROWS, COLUMNS = 50, 64
INPUT, BUFFER, KEPT, OUTPUT, SIZE = (at << 16 for at in range(5))
FIRST_ADDRESS = 1 << 40


class Program:
    """`others` and then `own` take the input, a buffer, memory that is kept, and the output."""

    def __init__(self, others, own, shape=(ROWS, COLUMNS), dtype=torch.float32, scale=1.0):
        self.others, self.own, self.scale, self.replays = others, own, scale, 0
        spec = TensorSpec(dtype=str(dtype)[6:], shape=shape, stride=torch.empty(shape).stride())
        address = FIRST_ADDRESS + 2 * SIZE + OUTPUT - KEPT
        self.called = SimpleNamespace(specs=(spec,), addresses=(address,))
        self.memory = torch.zeros(SIZE, dtype=torch.uint8)
        places = ((INPUT, (ROWS, COLUMNS), torch.float32), (BUFFER, (ROWS, COLUMNS), torch.float32))
        places += ((KEPT, shape, dtype), (OUTPUT, shape, dtype))
        self.x, self.buffer, self.kept, self.out = (self.view(*place) for place in places)

    def view(self, at, shape, dtype):
        count = torch.Size(shape).numel()
        return self.memory[at : at + count * dtype.itemsize].view(dtype).view(shape)

    def replay(self, seed, graph):
        self.replays += 1
        given = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(seed)) * self.scale
        self.x.copy_(given)
        self.out.fill_(1)
        self.others(self)
        if graph == "call":
            self.own(self)
        return SimpleNamespace(inputs_unchanged=self.x.equal(given))

    def view_memory(self):
        half = KEPT  # two pieces
        return [(FIRST_ADDRESS, self.memory[:half]), (FIRST_ADDRESS + 2 * SIZE, self.memory[half:])]

    def list_given(self, *, with_inputs):
        return [(FIRST_ADDRESS + INPUT, self.x.nbytes)] if with_inputs else []

    def view_outputs(self):
        return [self.out.reshape(-1).view(torch.uint8)]
