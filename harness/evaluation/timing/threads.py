"""Passive waiting of the evaluator's OpenMP threads."""

from __future__ import annotations

import os
import sys

WAIT_POLICY = "OMP_WAIT_POLICY"


def wait_passively() -> bool:
    """Sets OMP_WAIT_POLICY=PASSIVE unless set. False: torch is loaded already, and its threads spin for
    milliseconds."""
    if WAIT_POLICY not in os.environ and "torch" in sys.modules:
        return False
    os.environ.setdefault(WAIT_POLICY, "PASSIVE")
    return True
