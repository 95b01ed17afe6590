"""The line between judge and worker: framed JSON with file descriptors, and the layout of tensors in shared memory.

Both ends import this and nothing else of each other. Whatever the judge receives is checked before it is used:
the other end is hostile. No torch here.
"""

from harness.protocol.channel import GO, REST, Channel, make_pair
from harness.protocol.doorbell import Doorbell, Signal, make_doorbell
from harness.protocol.tensor_layout import (
    ITEM_BYTES,
    KEPT_CALLS,
    Region,
    TensorSpec,
    count_kept_calls,
    flatten_value,
    place_contiguous,
    rebuild_value,
    storage_bytes,
)

__all__ = [
    "GO",
    "ITEM_BYTES",
    "KEPT_CALLS",
    "REST",
    "Channel",
    "Doorbell",
    "Region",
    "Signal",
    "TensorSpec",
    "count_kept_calls",
    "flatten_value",
    "make_doorbell",
    "make_pair",
    "place_contiguous",
    "rebuild_value",
    "storage_bytes",
]
