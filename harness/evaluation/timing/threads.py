"""How the evaluator's own threads wait: asleep, since a spinning thread disturbs a worker that is being timed."""

from __future__ import annotations

import os
import sys

WAIT_POLICY = "OMP_WAIT_POLICY"


def wait_passively() -> bool:
    """Sets OMP_WAIT_POLICY=PASSIVE for this process unless it is set. False: torch, whose OpenMP runtime reads it only
    while it is loaded, is loaded already, so that its threads spin for some milliseconds after each operation."""
    if WAIT_POLICY not in os.environ and "torch" in sys.modules:
        return False
    os.environ.setdefault(WAIT_POLICY, "PASSIVE")
    return True
