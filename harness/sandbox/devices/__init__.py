"""Devices that run candidates: a CPU, a GPU, and a CPU that emulates a GPU."""

from harness.domain import EMULATED, Language
from harness.languages import find_devices
from harness.sandbox.devices.base import Device, SharedArena
from harness.sandbox.devices.cpu import CpuDevice, EmulatedDevice
from harness.sandbox.devices.cuda import INPUT_SLACK_BYTES, CudaDevice

__all__ = [
    "INPUT_SLACK_BYTES",
    "CpuDevice",
    "CudaDevice",
    "Device",
    "EmulatedDevice",
    "SharedArena",
    "find_device",
    "open_device",
]


def open_device(name: str, gpu: str | None = None, *, memory_bytes: int | None = None) -> Device:
    """`name`: "cpu", "cuda:N" or "emulated"; `gpu` is imitated. Plans use `memory_bytes`. Raises UsageError."""
    if name == EMULATED:
        return EmulatedDevice(gpu, memory_bytes=memory_bytes)
    return CpuDevice(memory_bytes=memory_bytes) if name == "cpu" else CudaDevice(name, memory_bytes=memory_bytes)


def find_device(wanted: str, language: Language, gpu: str | None = None) -> Device | None:
    names = find_devices(wanted, language)
    return open_device(names[0], gpu) if names else None
