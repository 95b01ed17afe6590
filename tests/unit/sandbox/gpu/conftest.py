"""The copy engine in this process's memory."""

import ctypes
from types import SimpleNamespace

import pytest


@pytest.fixture
def host_copies(monkeypatch):
    """The copy engine, in this process's memory; `late` runs after its copies."""
    import torch

    from harness.protocol import device_memory
    from harness.sandbox.devices import STAGING_BYTES, CpuDevice
    from harness.sandbox.gpu import snapshot

    late = []

    def copy_rows(copy, stream):
        assert stream.value is None
        wanted = copy._obj
        for row in range(wanted.rows):
            source = wanted.source_address + row * wanted.source_pitch
            ctypes.memmove(wanted.target_host + row * wanted.target_pitch, source, wanted.width)
        return 0

    class Host(CpuDevice):
        staging = torch.empty(STAGING_BYTES, dtype=torch.uint8)

        def synchronize(self):
            for write in late:
                write()

    def view_bytes(stretch, device):
        return torch.frombuffer((ctypes.c_uint8 * stretch.size_bytes).from_address(stretch.address), dtype=torch.uint8)

    monkeypatch.setattr(device_memory, "_load_driver", lambda: SimpleNamespace(cuMemcpy2DAsync_v2=copy_rows))
    monkeypatch.setattr(snapshot, "view_bytes", view_bytes)
    return Host(), late
