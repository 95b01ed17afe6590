"""Translates CUDA sources to C++ that runs on the CPU, one thread block at a time.

`runtime/` holds the replacement headers. Unsupported constructs are reported by name.
"""

from harness.emulator.target import DEFAULT_TARGET, Emulation

__all__ = ["DEFAULT_TARGET", "Emulation"]
