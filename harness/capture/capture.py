"""Captures a user's model: runs the script, attributes the time to modules, and writes problems."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.capture.groups import ModuleGroup, group_modules, list_children, predict_gain
from harness.capture.options import RECORD, CaptureOptions
from harness.capture.problem_check import behaves_equally, make_problem
from harness.capture.problem_text import ProblemText
from harness.capture.runtime import list_arguments
from harness.capture.script import ModelFinder, run_script
from harness.capture.values import TensorFacts
from harness.capture.watch import Watch
from harness.domain import ProblemError, StoreError, UsageError
from harness.domain.files import explain_failure, replace_text
from harness.evaluation.case_validation import admit_cases
from harness.evaluation.timing.device_peaks import PeakStore
from harness.problems.discovery import read_problem
from harness.sandbox.devices import Device, open_device

MAX_OPERATORS = 48  # of one problem
NEAR_PEAK = 0.9
REPEATED_CALLS = 7  # of a model that the script called too rarely to be measured


@dataclass(slots=True, kw_only=True)
class CaptureReport:
    """`wall_us` is the time of one call of the model, `device_us` the part of it in which the GPU works."""

    model: str
    name: str
    device: str
    hardware: str
    calls: int
    wall_us: float
    device_us: float
    groups: list[ModuleGroup]
    folder: Path
    written: dict[str, ProblemText] = field(default_factory=dict)

    def make_record(self) -> dict[str, Any]:
        names = ("model", "name", "device", "hardware", "calls", "wall_us", "device_us")
        groups = [_record_group(group, self.written.get(group.problem)) for group in self.groups]
        return {name: getattr(self, name) for name in names} | {"groups": groups}


def watch_script(script: Path, arguments: Sequence[str], model: str, calls: int) -> Watch:
    """Raises ScriptFailed and UsageError."""
    watch = Watch(max_calls=calls)
    finder = ModelFinder(model, watch.attach)
    with finder.watching():
        run_script(script, arguments)
    finder.require()
    if not watch.timed:
        _repeat_calls(watch)
    watch.detach()
    return watch


def _repeat_calls(watch: Watch) -> None:
    (args, kwargs), gradients = watch.last, any(f.has_gradients for f in watch.modules[""].forms.values())
    module, watch.max_calls = watch.modules[""].module, REPEATED_CALLS + 1
    with nullcontext() if gradients else torch.no_grad():
        while watch.calls < REPEATED_CALLS:
            module(*args, **kwargs)


def capture(
    script: Path, arguments: Sequence[str], model: str, folder: Path, *, options: CaptureOptions, cache: Path | None
) -> CaptureReport:
    """Write problems to `folder`. Raises ScriptFailed, UsageError and StoreError."""
    watch = watch_script(script, arguments, model, options.calls)
    device = open_device("cpu" if watch.device.type != "cuda" else f"cuda:{watch.device.index or 0}")
    groups = _group_at_peaks(watch, PeakStore(cache), device)
    report = CaptureReport(
        model=type(watch.modules[""].module).__name__,
        name=model,
        device=device.name,
        hardware=device.chip,
        calls=watch.profiled,
        wall_us=watch.wall_us / watch.timed,
        device_us=watch.modules[""].time_us / watch.profiled,
        groups=groups,
        folder=folder,
    )
    _write_problems(report, options, watch)
    return report


def _group_at_peaks(watch: Watch, peaks: PeakStore, device: Device) -> list[ModuleGroup]:
    """Measure the peaks again if a module reaches them: on a busy machine they are measured too low."""
    groups = group_modules(watch, peaks.find(device))
    if max(group.peak_fraction for group in groups) > NEAR_PEAK:
        groups = group_modules(watch, peaks.measure(device))
    return groups


def _remove_earlier(folder: Path) -> None:
    """Remove the problems of an earlier capture. Raises StoreError."""
    if (folder / RECORD).exists():
        for group in read_capture(folder)["groups"]:
            if group["problem"]:
                (folder / f"{group['problem']}.py").unlink(missing_ok=True)


def _write_problems(report: CaptureReport, options: CaptureOptions, watch: Watch) -> None:
    _remove_earlier(report.folder)
    waiting = list(_find_named(report.groups, options.modules)) if options.modules else report.groups[:1]
    seen = {id(one) for one in waiting}
    while waiting and len(report.written) < options.max_problems:
        group = waiting.pop(0)
        if not _try_group(group, report, options, watch) and not options.modules:
            fresh = [one for one in list_children(group, report.groups) if id(one) not in seen]
            seen |= {id(one) for one in fresh}
            waiting = sorted([*waiting, *fresh], key=lambda one: -one.share)
    for group in waiting:
        group.reason = f"beyond the {options.max_problems} problems asked for"
    _replace(report.folder / RECORD, json.dumps(report.make_record(), indent=1))


def _find_named(groups: list[ModuleGroup], names: Sequence[str]) -> list[ModuleGroup]:
    found = [one for one in groups if one.kind in names or set(one.paths) & set(names)]
    if not found:
        raise UsageError(
            f"no module {', '.join(names)} was called; choose among {', '.join({g.kind: 0 for g in groups})}"
        )
    return found


def _try_group(group: ModuleGroup, report: CaptureReport, options: CaptureOptions, watch: Watch) -> bool:
    """Return whether modules inside need no problem of their own."""
    if not options.modules and group.gain_limit < options.min_gain:
        group.reason = f"at most {group.gain_limit:.3f}x"
        return predict_gain(group.share, float("inf")) < options.min_gain
    name = _make_name(group.kind, set(report.written))
    settings = _list_settings(group, options)
    summary = f"{group.kind} of {report.model}, {len(group.paths)} of its modules, {group.share:.0%} of a call's time."
    try:
        _require_block(group, options)
        text = make_problem(group.module, group.forms, summary=summary, settings=settings, device=watch.device)
        if text.operators > MAX_OPERATORS and not options.modules:
            raise ProblemError(f"it consists of {text.operators} operators: too many for one problem")
        _store_problem(report.folder / f"{name}.py", text.text, watch.device)
    except ProblemError as error:
        group.reason = str(error)
        return False
    equal = [group.paths[0]]
    for path in group.paths[1:]:
        if behaves_equally(group.module, watch.modules[path].module, text.forms[0], watch.device):
            equal.append(path)
    if len(equal) < len(group.paths):
        text.left_out.append(f"{len(group.paths) - len(equal)} modules of this class compute something else")
        group.share *= len(equal) / len(group.paths)
        group.paths = equal
    group.problem, group.left_out = name, text.left_out
    report.written[name] = text
    return True


def _require_block(group: ModuleGroup, options: CaptureOptions) -> None:
    """Raises ProblemError for a sequence of blocks: the blocks are problems that occur more often."""
    children = list(group.module.children())
    is_sequence = type(group.module) is nn.Sequential and any(list(child.children()) for child in children)
    if is_sequence and not options.modules:
        raise ProblemError("it is a sequence of blocks")


def _make_name(kind: str, taken: set[str]) -> str:
    words = re.sub(r"(?<=[a-z])G?LU", lambda found: found[0].lower(), kind)  # ReLU, SwiGLU
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", words).lower()
    return name if name not in taken else next(f"{name}_{at}" for at in count(2) if f"{name}_{at}" not in taken)


def _list_settings(group: ModuleGroup, options: CaptureOptions) -> list[str]:
    settings = ['TAGS = ("captured",)']
    if options.backward and any(form.has_gradients for form in group.forms):
        settings.append("BACKWARD = True")
    elif any(form.changes_inputs for form in group.forms):
        settings.append("IN_PLACE = True")
    if group.module.training:
        settings.append("TRAINING = True")
    if torch.backends.cuda.matmul.allow_tf32 or torch.get_float32_matmul_precision() != "highest":
        settings.append("ALLOW_TF32 = True")
    return settings


def _store_problem(path: Path, text: str, device: torch.device) -> None:
    """Raises ProblemError if `problems check` rejects it."""
    _replace(path, text)
    failed = [check for one in admit_cases(read_problem(path, path.parent.name), device, 0) for check in one.failed]
    if failed:
        path.unlink()
        raise ProblemError(f"it cannot be scored: {failed[0].name}: {failed[0].evidence}")


def _replace(path: Path, text: str) -> None:
    """Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {explain_failure(error)}; choose another folder") from error


def read_capture(folder: Path) -> dict[str, Any]:
    """Raises UsageError and StoreError."""
    path = folder / RECORD
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"no {path}: make it with harness capture") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path}: {error}; capture the model again") from error
    return record


def _record_group(group: ModuleGroup, text: ProblemText | None) -> dict[str, Any]:
    record = {one.name: getattr(group, one.name) for one in fields(group) if one.name not in ("module", "forms")}
    record |= {"peak_fraction": group.peak_fraction, "gain_limit": group.gain_limit}
    if text is not None:
        record |= {"inputs": text.inputs, "arguments": _list_kinds(text), "shapes": text.shapes}
    return record


def _list_kinds(text: ProblemText) -> dict[str, tuple[str, bool]]:
    """Map arguments to dtype or constant, and whether it is a tensor."""
    return {
        name: (leaf.dtype, True) if isinstance(leaf, TensorFacts) else (repr(leaf), False)
        for name, leaf in list_arguments(text.forms[0].arguments)
    }
