"""One request for an evaluation, for all routes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from harness.domain import Baseline, Fidelity, Language, Precision, WorkloadName

PRIORITIES = {"low": 0, "normal": 1, "high": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The program is `candidate`, or is extracted from `completion`; the problem is `problem` of `suite`, or the
    `reference`. `language` None is detected. `requires_kernel` None follows the suite; a reference by text requires
    one.
    """

    candidate: str | None = None
    completion: str | None = None
    problem: str | None = None
    suite: str = "core"
    reference: str | None = None
    language: Language | None = None
    workload: WorkloadName | None = None
    baseline: Baseline = "eager"
    requires_kernel: bool | None = None
    fidelity: Fidelity = "full"
    dtype: Precision | None = None

    @property
    def digest(self) -> str:
        return sha256(self.encode().encode()).hexdigest()[:32]

    def encode(self) -> str:
        record = asdict(self)
        if self.dtype is None:  # equal to stored requests from before there were dtypes
            del record["dtype"]
        return json.dumps(record, sort_keys=True, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Submission:
        record: dict[str, Any] = json.loads(text)
        return cls(**record)
