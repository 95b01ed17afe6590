"""Where the driver library of workers places all device memory; processes that replay their work map it there, too.

The same numbers stand in `harness/worker/recorder/driver/memory.h`.
"""

FIRST_ADDRESS, RANGE_BYTES = 0x600000000000, 1 << 42
