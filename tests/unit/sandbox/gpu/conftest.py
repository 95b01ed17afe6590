"""A worker's device memory, in this process's memory."""

import ctypes

import pytest


@pytest.fixture
def host_copies(monkeypatch):
    """The device, and a list of what runs after its copies."""
    import torch

    from harness.sandbox.devices import CpuDevice
    from harness.sandbox.gpu import worker_memory

    late = []

    class Host(CpuDevice):
        def synchronize(self):
            for write in late:
                write()

    def view_bytes(stretch, device):
        return torch.frombuffer((ctypes.c_uint8 * stretch.size_bytes).from_address(stretch.address), dtype=torch.uint8)

    monkeypatch.setattr(worker_memory, "view_bytes", view_bytes)
    return Host(), late
