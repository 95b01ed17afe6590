"""Changes of tensors in nested arguments."""

from collections import OrderedDict

import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from harness.tensors.values import map_tensors


def test_types_of_tuples_and_mappings_stay():
    given = (pack_sequence([torch.ones(3), torch.ones(2)]), OrderedDict(x=[torch.ones(2)], y=None))
    packed, mapping = map_tensors(given, lambda one: one * 2)
    assert isinstance(packed, PackedSequence)
    assert packed.data.tolist() == [2.0] * 5
    assert isinstance(mapping, OrderedDict)
    assert (mapping["x"][0].tolist(), mapping["y"], given[1]["x"][0].tolist()) == ([2.0] * 2, None, [1.0] * 2)
