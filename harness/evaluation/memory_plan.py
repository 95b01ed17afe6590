"""Plans which checks of one evaluation fit into device memory, in bytes.

In the smallest plan reference and candidate run in turn, with copies in host memory. Free memory is spent on the
`CHECKS`, in order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from harness.sandbox.memory_limits import Room

TRIALS, LEAST_TRIALS = 3, 2  # with the problem's own inputs
LAST_KEPT = 2  # outputs of the last call and of the one before
TIMED_COPIES = 13  # calls whose outputs are kept during timing
SMALL_BYTES = 64 << 20  # of a problem for which many calls are affordable
ROOMY = 8  # times the size of a copy must be free, or it is kept in host memory
LARGE_BYTES = 64 << 20  # outputs that are compared with the reference's first
TRUTHS = 3  # sizes of the outputs: the reference's own, and float64

Holds = Literal["device", "host"]
Thrift = Literal["planned", "lean", "least"]  # the usual plan, or one for a retry


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """`work_bytes` is what a reference call needs beside inputs and outputs, `float64_bytes` a call in float64,
    `mixing_bytes` the generation of stress inputs, `slice_bytes` a comparison, `context_bytes` an idle worker.
    `row_steps` and `further_steps` are calls in addition to the trials.
    """

    inputs_bytes: int
    outputs_bytes: int
    weights_bytes: int
    arena_bytes: int
    work_bytes: int = 0
    float64_bytes: int = 0
    mixing_bytes: int = 0
    slice_bytes: int = 0
    context_bytes: int = 0
    kept_calls: int = 2
    row_steps: int = 0
    further_steps: int = 0

    def count_worker_bytes(self, kept_calls: int) -> int:
        own_bytes = self.context_bytes + self.weights_bytes + self.work_bytes + kept_calls * self.outputs_bytes
        return self.arena_bytes + own_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """With `holds` "host", expected outputs are computed before the worker starts, and copies are in host memory. With
    `kept_calls` 1, earlier outputs are not compared again. Without `timed_outputs`, timed outputs are compared in
    samples. `stress` includes declared distributions, other weights and nearby shapes. With `own_first`, calls are
    compared with the reference's outputs before their truth is computed.
    """

    holds: Holds = "device"
    trials: int = TRIALS
    float64: bool = True
    kept_calls: int = 8
    inputs_on_device: bool = True
    baseline_beside: bool = True
    timed_outputs: bool = True
    probes: bool = True
    stress: bool = True
    roofline: bool = True
    own_first: bool = True
    device_bytes: int = 0  # at its peak

    def describe_reductions(self, full: Self) -> tuple[str, ...]:
        told = {
            "expected outputs computed before the candidate was loaded and kept in host memory": self.holds == "host",
            f"{self.trials} of {full.trials} inputs as given": self.trials < full.trials,
            "the reference's own dtype instead of float64 truth": not self.float64,
            _describe_kept(self.kept_calls, full.kept_calls): self.kept_calls < full.kept_calls,
            "timed inputs come from host memory": not self.inputs_on_device,
            "baseline timed separately": not self.baseline_beside,
            "timed outputs compared in samples": not self.timed_outputs,
            "no probes": not self.probes,
            "no stress inputs, other weights or shapes": not self.stress,
            "no roofline for impossible times": not self.roofline,
        }
        return tuple(words for words, applies in told.items() if applies)


CHECKS = (
    "trials", "float64", "stress", "own_first", "last_outputs", "inputs_on_device", "baseline_beside", "kept_outputs",
    "timed_outputs", "roofline", "probes",
)  # fmt: skip


def plan_in_full(need: MemoryNeed) -> MemoryPlan:
    return _with_peak(MemoryPlan(kept_calls=need.kept_calls), need)


def plan_smallest(need: MemoryNeed, holds: Holds = "host") -> MemoryPlan:
    smallest = MemoryPlan(
        holds=holds, trials=LEAST_TRIALS, float64=False, kept_calls=1, inputs_on_device=holds == "device",
        baseline_beside=False, timed_outputs=False, probes=False, stress=False, roofline=False, own_first=False,
    )  # fmt: skip
    return _with_peak(smallest, need)


def plan_memory(need: MemoryNeed, room: Room) -> MemoryPlan | None:
    """Return the smallest plan with every check that still fits; in host memory if stress inputs fit only there."""
    on_device, on_host = (_fill(plan_smallest(need, "device"), need, room), _fill(plan_smallest(need), need, room))
    if on_device is None or (on_host is not None and on_host.stress and not on_device.stress):
        return on_host
    return on_device


def _fill(
    plan: MemoryPlan, need: MemoryNeed, room: Room, is_allowed: Callable[[MemoryPlan], bool] = lambda _: True
) -> MemoryPlan | None:
    if not fits(plan, need, room):
        return None
    for part in CHECKS:
        more = (_with_peak(other, need) for other in _add(plan, part, plan_in_full(need)))
        plan = next((other for other in more if is_allowed(other) and fits(other, need, room)), plan)
    return plan


def plan_lean(need: MemoryNeed, room: Room) -> MemoryPlan | None:
    """Plan a retry after OUT_OF_MEMORY: use the minimum or up to half of the free memory beside the worker.

    Other checks stay, so that failed allocations never relax an evaluation.
    """

    def is_lean(plan: MemoryPlan) -> bool:
        is_least = plan.kept_calls == 1 and not plan.inputs_on_device
        beside_bytes = need.count_worker_bytes(plan.kept_calls) + plan.inputs_on_device * need.inputs_bytes
        return not (plan.baseline_beside or plan.probes) and (is_least or 2 * beside_bytes <= room.device_bytes)

    return _fill(plan_smallest(need), need, room, is_lean)


def fits(plan: MemoryPlan, need: MemoryNeed, room: Room) -> bool:
    return room.holds(count_device_bytes(plan, need), count_host_bytes(plan, need))


def count_device_bytes(plan: MemoryPlan, need: MemoryNeed) -> int:
    """Excludes the reference's weights, which are already allocated."""
    inputs, outputs = need.inputs_bytes, need.outputs_bytes
    worker = need.count_worker_bytes(plan.kept_calls)
    call = inputs + outputs + need.work_bytes
    comparing, mixing = _count_comparison_bytes(plan, need), need.mixing_bytes if plan.stress else 0
    phases = [worker + need.slice_bytes, *([call + 2 * outputs] if plan.roofline else [])]
    if plan.holds == "device":
        phases.append(worker + comparing)
    else:
        making = [call + mixing, *([need.float64_bytes] if plan.float64 else [])]
        phases.append(max(making))
    if plan.inputs_on_device:
        phases.append(worker + inputs + mixing + need.slice_bytes)
    if plan.baseline_beside:
        copies = TIMED_COPIES * outputs if plan.timed_outputs else 0
        phases.append(2 * worker + inputs + mixing + copies + need.slice_bytes)
    if plan.probes:
        phases.append(worker + inputs + outputs + comparing)
    return max(phases)


def _count_comparison_bytes(plan: MemoryPlan, need: MemoryNeed) -> int:
    inputs, outputs = need.inputs_bytes, need.outputs_bytes
    truths = TRUTHS * outputs if plan.float64 else outputs
    computing = max(inputs + outputs + need.work_bytes, outputs + need.float64_bytes if plan.float64 else 0)
    mixing = need.mixing_bytes if plan.stress else 0
    late = outputs if plan.own_first and outputs >= LARGE_BYTES else 0
    return inputs + late + max(computing, mixing, truths + outputs + need.slice_bytes)


def count_host_bytes(plan: MemoryPlan, need: MemoryNeed) -> int:
    if plan.holds == "device":
        return 0
    outputs = need.outputs_bytes * (3 if plan.float64 else 1)
    steps = plan.trials + need.row_steps + (need.further_steps if plan.stress else 0)
    return steps * (need.inputs_bytes + outputs) + 3 * need.outputs_bytes


def _add(plan: MemoryPlan, part: str, full: MemoryPlan) -> Iterator[MemoryPlan]:
    if part == "trials":
        yield from (replace(plan, trials=trials) for trials in range(full.trials, plan.trials, -1))
    elif part == "last_outputs":
        yield replace(plan, kept_calls=min(LAST_KEPT, full.kept_calls))
    elif part == "kept_outputs":
        yield from (replace(plan, kept_calls=kept) for kept in range(full.kept_calls, plan.kept_calls, -1))
    elif part == "timed_outputs" and not plan.baseline_beside:
        return
    else:
        wanted: dict[str, Any] = {part: True}
        yield replace(plan, **wanted)


def _with_peak(plan: MemoryPlan, need: MemoryNeed) -> MemoryPlan:
    return replace(plan, device_bytes=count_device_bytes(plan, need))


def _describe_kept(kept: int, usual: int) -> str:
    return f"earlier outputs compared again for {kept - 1} of {usual - 1} calls"


def choose_plan(need: MemoryNeed, room: Room, thrift: Thrift) -> MemoryPlan | None:
    if thrift == "planned":
        return plan_memory(need, room)
    if thrift == "lean":
        return plan_lean(need, room)
    least = plan_smallest(need)
    return least if fits(least, need, room) else None
