"""Translates CUDA sources to C++ that runs on the CPU, one thread block at a time.

`runtime/` holds the replacement headers. Unsupported constructs are reported by name.
"""

from harness.emulator.target import TARGETS, Emulation, Target, find_target

__all__ = ["TARGETS", "Emulation", "Target", "find_target"]
