"""The address range in which the workers' driver library places all device memory; replayers map it there, too.

The same numbers are in `harness/worker/recorder/driver/memory.h`.
"""

FIRST_ADDRESS, RANGE_BYTES = 0x600000000000, 1 << 42
