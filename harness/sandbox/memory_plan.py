"""Plans the device memory of one evaluation, before its worker is started: what each check takes, and which checks fit.

The smallest plan needs no more of the device than inputs, two outputs and weights, as KernelBench's evaluator does:
reference and candidate take turns on it, and what the evaluator keeps lies in host memory. What is free beyond that is
spent on further checks, in the order of `CHECKS`. Pure functions of sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

USABLE_SHARE = 0.9  # of the memory that is free: the rest is for fragments, and for everybody else
TRIALS, LEAST_TRIALS = 3, 2  # with the problem's own inputs
TIMED_COPIES = 8  # calls of which inputs and outputs are kept while a candidate is timed, those at work among them
MIXING = 2  # further copies of the inputs while stress inputs are made

Holds = Literal["device", "host"]
Thrift = Literal["planned", "lean", "least"]  # which plan: the usual one, or one for a repetition
Check = Literal[
    "trials", "float64", "kept_outputs", "inputs_on_device", "baseline_beside", "probes", "stress", "roofline"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Sizes of a problem on its device. `work_bytes` is what a call of the reference takes beside its inputs and
    outputs, `float64_bytes` all that a call in float64 takes, `slice_bytes` what it takes to compare a slice,
    `context_bytes` what a worker takes of the device before it allocates anything. `kept_calls`: of how many calls the
    worker keeps the outputs where memory is plenty. Beside `TRIALS` the correctness check makes `row_steps` calls in a
    row, and `further_steps` with stress inputs and the like."""

    inputs_bytes: int
    outputs_bytes: int
    weights_bytes: int
    arena_bytes: int
    work_bytes: int = 0
    float64_bytes: int = 0
    slice_bytes: int = 0
    context_bytes: int = 0
    kept_calls: int = 2
    row_steps: int = 0
    further_steps: int = 0

    def count_worker_bytes(self, kept_calls: int) -> int:
        """One worker that keeps the outputs of so many calls, and the memory that it shares with the evaluator."""
        own_bytes = self.context_bytes + self.weights_bytes + self.work_bytes + kept_calls * self.outputs_bytes
        return self.arena_bytes + own_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Free bytes of the device and of the host. `is_shared`: both are the same memory, as on a CPU."""

    device_bytes: int
    host_bytes: int
    is_shared: bool = False

    def holds(self, device_bytes: int, host_bytes: int) -> bool:
        """Whether that much of each is usable."""
        if self.is_shared:
            return device_bytes + host_bytes <= USABLE_SHARE * min(self.device_bytes, self.host_bytes)
        return device_bytes <= USABLE_SHARE * self.device_bytes and host_bytes <= USABLE_SHARE * self.host_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Which checks are made, and where the evaluator keeps what it compares. With "host" the expected outputs of all
    calls are computed before the worker is started, and inputs, expected and earlier outputs lie in host memory.

    `kept_calls` 1: the worker keeps the outputs of its last call alone, so no earlier ones are looked at again.
    `baseline_beside` False: baseline and candidate are timed one after the other, and only samples of the outputs of
    timed calls are compared. `inputs_on_device` False: the inputs of timed calls come from host memory. `stress`:
    declared distributions, other weights, nearby shapes. `roofline` False: no time is found to be impossible."""

    holds: Holds = "device"
    trials: int = TRIALS
    float64: bool = True
    kept_calls: int = 8
    inputs_on_device: bool = True
    baseline_beside: bool = True
    probes: bool = True
    stress: bool = True
    roofline: bool = True
    device_bytes: int = 0  # that it takes at its peak

    def describe_reductions(self, full: MemoryPlan) -> tuple[str, ...]:
        """What is less than in the full plan, in words."""
        told = {
            "expected outputs computed before the candidate was loaded, and kept in host memory": self.holds == "host",
            f"{self.trials} of {full.trials} inputs as given": self.trials < full.trials,
            "the reference's own dtype instead of float64 truth": not self.float64,
            _describe_kept(self.kept_calls, full.kept_calls): self.kept_calls < full.kept_calls,
            "timed inputs come from host memory": not self.inputs_on_device,
            "the baseline timed apart, and samples of timed outputs compared": not self.baseline_beside,
            "no probes": not self.probes,
            "no stress inputs, other weights or shapes": not self.stress,
            "no roofline for impossible times": not self.roofline,
        }
        return tuple(words for words, applies in told.items() if applies)


CHECKS: tuple[Check, ...] = (
    "trials", "float64", "kept_outputs", "inputs_on_device", "baseline_beside", "roofline", "probes", "stress",
)  # fmt: skip


def plan_in_full(need: MemoryNeed) -> MemoryPlan:
    """Everything, with all that the evaluator keeps on the device: what is done where memory is plenty."""
    return _with_peak(MemoryPlan(kept_calls=need.kept_calls), need)


def plan_smallest(need: MemoryNeed) -> MemoryPlan:
    """As little of the device as possible."""
    smallest = MemoryPlan(
        holds="host", trials=LEAST_TRIALS, float64=False, kept_calls=1, inputs_on_device=False, baseline_beside=False,
        probes=False, stress=False, roofline=False,
    )  # fmt: skip
    return _with_peak(smallest, need)


def plan_memory(need: MemoryNeed, room: Room) -> MemoryPlan | None:
    """The full plan where it fits; else the smallest, with every further check that fits, the most important first.
    None where not even the smallest fits."""
    full, plan = plan_in_full(need), plan_smallest(need)
    if fits(full, need, room):
        return full
    if not fits(plan, need, room):
        return None
    for check in CHECKS:
        more = (_with_peak(other, need) for other in _add(plan, check, full))
        plan = next((other for other in more if fits(other, need, room)), plan)
    return plan


def plan_lean(need: MemoryNeed, room: Room) -> MemoryPlan | None:
    """For a repetition after the candidate ran out of memory: as little as possible while its worker lives, unless that
    is less than half of what is free; but every check that costs nothing then, so that nobody is judged more leniently
    for an allocation that failed."""
    full, plan = plan_in_full(need), plan_smallest(need)
    if not fits(plan, need, room):
        return None
    for check in CHECKS:
        more = (
            _with_peak(other, need) for other in _add(plan, check, full) if not (other.baseline_beside or other.probes)
        )
        plan = next((other for other in more if _is_lean(other, need, room) and fits(other, need, room)), plan)
    return plan


def _is_lean(plan: MemoryPlan, need: MemoryNeed, room: Room) -> bool:
    is_least = plan.kept_calls == 1 and not plan.inputs_on_device
    beside_bytes = need.count_worker_bytes(plan.kept_calls) + plan.inputs_on_device * need.inputs_bytes
    return is_least or 2 * beside_bytes <= room.device_bytes


def fits(plan: MemoryPlan, need: MemoryNeed, room: Room) -> bool:
    return room.holds(count_device_bytes(plan, need), count_host_bytes(plan, need))


def count_device_bytes(plan: MemoryPlan, need: MemoryNeed) -> int:
    """The most that workers and evaluator take of the device at any time, the reference's weights apart, which are
    there already."""
    inputs, outputs = need.inputs_bytes, need.outputs_bytes
    worker = need.count_worker_bytes(plan.kept_calls)
    call = inputs + outputs + need.work_bytes
    phases = [worker + need.slice_bytes, *([call + 2 * outputs] if plan.roofline else [])]
    if plan.holds == "device":
        kept = 4 * inputs + (plan.kept_calls + 4) * outputs
        phases.append(worker + kept + need.work_bytes + need.float64_bytes + need.slice_bytes)
    else:
        making = [call + (MIXING * inputs if plan.stress else 0), *([need.float64_bytes] if plan.float64 else [])]
        phases.append(max(making))
    if plan.inputs_on_device:
        phases.append(worker + inputs + need.slice_bytes)
    if plan.baseline_beside:
        phases.append(2 * worker + TIMED_COPIES * (inputs + outputs))
    if plan.probes:
        phases.append(worker + 2 * call + 2 * outputs + need.slice_bytes)
    return max(phases)


def count_host_bytes(plan: MemoryPlan, need: MemoryNeed) -> int:
    """What the evaluator keeps in host memory for the device's sake."""
    if plan.holds == "device":
        return 0
    outputs = need.outputs_bytes * (3 if plan.float64 else 1)
    steps = plan.trials + need.row_steps + (need.further_steps if plan.stress else 0)
    return steps * (need.inputs_bytes + outputs) + 3 * need.outputs_bytes


def _add(plan: MemoryPlan, check: Check, full: MemoryPlan) -> Iterator[MemoryPlan]:
    """The plan with one more check, the best way first."""
    if check == "trials":
        yield from (replace(plan, trials=trials) for trials in range(full.trials, plan.trials, -1))
    elif check == "kept_outputs":
        yield from (replace(plan, kept_calls=kept) for kept in range(full.kept_calls, plan.kept_calls, -1))
    else:
        wanted: dict[str, Any] = {check: True}
        yield replace(plan, **wanted)


def _with_peak(plan: MemoryPlan, need: MemoryNeed) -> MemoryPlan:
    return replace(plan, device_bytes=count_device_bytes(plan, need))


def _describe_kept(kept: int, usual: int) -> str:
    return f"earlier outputs looked at again for {kept - 1} of {usual - 1} calls"
