"""CUDA sources as C++ that runs on the CPU, thread block by thread block.

`sources` rewrites what a candidate wrote (`rewrite`, on top of `tokens`) against the headers in `runtime/`, which stand
for CUDA's own; a construct that is not covered is named, never guessed at. This room compiles nothing: the build room
does, see `harness.builder.emulated`.
"""

from harness.emulator.target import DEFAULT_TARGET, Emulation

__all__ = ["DEFAULT_TARGET", "Emulation"]
