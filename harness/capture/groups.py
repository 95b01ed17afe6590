"""Groups equal modules of a model, with their share of the time, their roofline and the gain that is left."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from harness.capture.graph_code import list_state
from harness.capture.problem_text import list_facts
from harness.capture.watch import CallForm, ModuleRecord, Watch
from harness.evaluation.timing.roofline import DevicePeaks
from harness.tensors.values import count_bytes

OVERHEAD_FRACTION = 0.1  # of the roofline: below, a call consists mostly of launches and small operators


@dataclass(slots=True, kw_only=True)
class ModuleGroup:
    """`share` is that of a call of the model, `own_share` without the modules inside. `time_us` and `roofline_us` are
    of one call of one module. `reason` says why there is no problem, `opaque` why chains in its forward have none."""

    kind: str
    paths: list[str]
    module: nn.Module
    forms: list[CallForm]
    share: float
    own_share: float
    calls: float
    time_us: float
    roofline_us: float
    bound: str
    problem: str = ""
    reason: str = ""
    opaque: str = ""
    left_out: list[str] = field(default_factory=list)

    @property
    def peak_fraction(self) -> float:
        return min(self.roofline_us / self.time_us, 1.0) if self.time_us else 0.0

    @property
    def gain_limit(self) -> float:
        """Amdahl: speedup of the model if these modules ran at the roofline."""
        return predict_gain(self.share, 1 / self.peak_fraction if self.peak_fraction else float("inf"))


def predict_gain(share: float, speedup: float) -> float:
    return 1 / max(1 - share * (1 - 1 / speedup), 1e-9)


def group_modules(watch: Watch, peaks: DevicePeaks) -> list[ModuleGroup]:
    """Return groups of modules that were called, largest share first."""
    found: dict[str, list[tuple[str, ModuleRecord]]] = {}
    for path, record in watch.modules.items():
        if record.forms and record.calls:
            found.setdefault(_describe(record.module), []).append((path, record))
    own_us = _find_own_times(watch)
    groups = [_make_group(members, own_us, watch, peaks) for members in found.values()]
    return sorted(groups, key=lambda one: -one.share)


def _find_own_times(watch: Watch) -> dict[str, float]:
    """Return the time that each module spends in operators of its own `forward`."""
    own_us = {path: record.time_us for path, record in watch.modules.items() if record.calls}
    for path in [one for one in own_us if one]:
        parent = path.rpartition(".")[0]
        while parent and parent not in own_us:
            parent = parent.rpartition(".")[0]
        own_us[parent] = own_us.get(parent, 0.0) - watch.modules[path].time_us
    return own_us


def _describe(module: nn.Module) -> str:
    """Equal for modules with equal class, settings and state."""
    state = [(name, tuple(value.shape), str(value.dtype)) for name, value in list_state(module).items()]
    return f"{type(module).__module__}.{type(module).__qualname__} {module.training} {module!r} {state}"


def _make_group(
    members: list[tuple[str, ModuleRecord]], own_us: dict[str, float], watch: Watch, peaks: DevicePeaks
) -> ModuleGroup:
    total_us = watch.modules[""].time_us
    records = [record for _, record in members]
    time_us, calls = sum(one.time_us for one in records), sum(one.calls for one in records)
    forms = merge_forms(records)
    module = records[0].module
    memory_us, operations_us = _find_roofline(module, forms, peaks)
    fraction = max(memory_us, operations_us) * calls / time_us if time_us else 0.0
    bound = "memory" if memory_us >= operations_us else "compute"
    return ModuleGroup(
        kind=type(module).__name__,
        paths=[path for path, _ in members],
        module=module,
        forms=forms,
        share=time_us / total_us if total_us else 0.0,
        own_share=max(sum(own_us[path] for path, _ in members) / total_us, 0.0) if total_us else 0.0,
        calls=calls / max(watch.profiled, 1),
        time_us=time_us / calls,
        roofline_us=max(memory_us, operations_us),
        opaque=records[0].opaque,
        bound="overhead" if fraction < OVERHEAD_FRACTION else bound,
    )


def merge_forms(records: list[ModuleRecord]) -> list[CallForm]:
    merged: dict[str, CallForm] = {}
    for record in records:
        for key, form in record.forms.items():
            if key not in merged:
                merged[key] = CallForm(form.arguments)
            merged[key].add(form)
    return list(merged.values())


def _find_roofline(module: nn.Module, forms: list[CallForm], peaks: DevicePeaks) -> tuple[float, float]:
    """Return the time of moving inputs, weights and outputs once, and of the operations, as means over the calls."""
    count = sum(form.count for form in forms)
    weights = count_bytes({id(value): value for value in list_state(module).values()}.values())
    inputs = sum(form.count * sum(facts.size_bytes for _, facts in list_facts(form.arguments)) for form in forms)
    moved = weights + (inputs + sum(form.output_bytes for form in forms)) / count
    flops = sum(form.flops for form in forms) / count
    return moved / peaks.bandwidth_gb_s / 1e3, flops / peaks.tflops / 1e6


def list_children(group: ModuleGroup, groups: list[ModuleGroup]) -> list[ModuleGroup]:
    """Return the groups of the modules that this group's first module calls itself."""
    owners = {path: at for at, one in enumerate(groups) for path in one.paths if path}
    prefix = f"{group.paths[0]}." if group.paths[0] else ""
    inside = [path for path in owners if path.startswith(prefix)]
    direct = [path for path in inside if not any(path.startswith(f"{other}.") for other in inside)]
    return [groups[at] for at in dict.fromkeys(owners[path] for path in direct)]
