"""Protocol between evaluator and worker. Each end validates the messages it receives. Does not import torch."""

from harness.protocol.channel import GO, HELD_US, REST, Channel, Doorbell, Signal, make_doorbell, make_pair
from harness.protocol.tensor_layout import (
    ITEM_BYTES,
    KEPT_CALLS,
    Region,
    TensorSpec,
    add_state,
    count_kept_calls,
    count_span,
    flatten_value,
    group_equal,
    have_same_nesting,
    list_leaves,
    map_leaves,
    place_contiguous,
    rebuild_value,
    storage_bytes,
)
