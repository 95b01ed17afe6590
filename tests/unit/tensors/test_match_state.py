"""Which parts of a candidate's state are those of the reference."""

import pytest
import torch

from harness.sandbox.model_session import match_state
from harness.sandbox.worker_client import describe

MEAN, WIDE = "bn.running_mean", torch.zeros(8)


def specs(*names, wide=()):
    return {name: describe(WIDE if name in wide else torch.zeros(4)) for name in names}


@pytest.mark.parametrize(
    ("own", "wanted", "found"),
    [
        (specs(MEAN, "running_mean"), specs(MEAN), {MEAN: MEAN}),
        (specs("running_mean"), specs(MEAN), {MEAN: "running_mean"}),
        (specs("norm.running_mean", "x"), specs("running_mean"), {"running_mean": "norm.running_mean"}),
        (specs("bn_running_mean"), specs(MEAN), {MEAN: "bn_running_mean"}),
        (specs("overrunning_mean", "mean"), specs(MEAN), {}),
        (specs("running_mean", "other.running_mean"), specs(MEAN), {}),
        (specs("running_mean", wide=["running_mean"]), specs(MEAN), {}),
        (specs("first.m", "second.m"), specs("0.m", "3.m"), {"0.m": "first.m", "3.m": "second.m"}),
        (specs("0.m", "norm.m"), specs("0.m", "3.m"), {"0.m": "0.m", "3.m": "norm.m"}),
        (specs("a.m", "b.m", wide=["a.m"]), specs("0.m", "3.m", wide=["0.m"]), {"0.m": "a.m", "3.m": "b.m"}),
        (specs("a.m", "b.m", wide=["a.m"]), specs("0.m", "3.m", wide=["3.m"]), {}),
        (specs("bn_running_mean"), specs(MEAN, "a.mean"), {MEAN: "bn_running_mean"}),
        (specs("m_1", "m2"), specs("0.m", "3.m"), {"0.m": "m_1", "3.m": "m2"}),
        (specs("norm.m2"), specs("m2"), {"m2": "norm.m2"}),
        (specs(), specs("a.m"), {}),
    ],
    ids=[
        "the same", "on top", "in a part", "prefix", "other words", "two", "shape", "in order", "one of two", "shapes",
        "wrong order", "one for two", "numbers",
        "number in the name", "none",
    ],
)  # fmt: skip
def test_state_has_the_same_name_or_one_that_ends_alike(own, wanted, found):
    assert match_state(own, wanted) == found
