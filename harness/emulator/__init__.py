"""Translates CUDA sources to C++ that runs on the CPU, one thread block at a time.

`runtime/` holds the replacement headers. Unsupported constructs are reported by name.
"""

from harness.emulator.headers import RUNTIME, copy_runtime, digest_emulator, digest_runtime
from harness.emulator.sources import (
    Emulation,
    Prepared,
    Unit,
    begins_with_syntax_error,
    drop_cuda_libraries,
    explain_failure,
    find_unknown_name,
    prepare_sources,
    write_target,
)
