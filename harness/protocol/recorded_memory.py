"""The address range of all device memory in workers and replayers.

The same numbers are in `harness/worker/recorder/driver/memory.h`.
"""

FIRST_ADDRESS, RANGE_BYTES = 0x600000000000, 1 << 42
