"""One request for an evaluation, for all routes."""

from __future__ import annotations

import json
from hashlib import sha256

from pydantic import BaseModel, ConfigDict, Field

from harness.domain import Baseline, Fidelity, Language, Precision, WorkloadName

PRIORITIES = {"low": 0, "normal": 1, "high": 2}


class ProgramAndProblem(BaseModel):
    """The program is `candidate`, or is extracted from `completion`, a model's answer. The problem is `problem`, a name
    in `suite` or SUITE/NAME, or `reference`, the text of a problem file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    candidate: str | None = None
    completion: str | None = None
    problem: str | None = None
    suite: str = "core"
    reference: str | None = None
    language: Language | None = Field(default=None, description="Default: detected from the program.")
    workload: WorkloadName | None = Field(default=None, description="Default: full; if emulated, small or reduced.")
    baseline: Baseline = "eager"
    dtype: Precision | None = Field(default=None, description="Of inputs and weights. Default: as in the problem.")
    requires_kernel: bool | None = Field(
        default=None,
        description="Reject programs without a custom kernel. Default: as the suite; true for a reference.",
    )


class Submission(ProgramAndProblem):
    fidelity: Fidelity = "full"

    @property
    def digest(self) -> str:
        return sha256(self.encode().encode()).hexdigest()[:32]

    def encode(self) -> str:
        record = self.model_dump()
        if self.dtype is None:  # equal to stored requests from before there were dtypes
            del record["dtype"]
        return json.dumps(record, sort_keys=True, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Submission:
        return cls.model_validate_json(text)
