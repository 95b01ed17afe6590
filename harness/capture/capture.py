"""Captures a user's model: runs the script, attributes time to modules, and writes them as equal problems."""

from __future__ import annotations

import copy
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.capture.groups import (
    ModuleGroup,
    describe_arguments,
    group_modules,
    list_children,
    outline_module,
    predict_gain,
)
from harness.capture.options import RECORD, CaptureOptions
from harness.capture.problem_text import (
    ProblemText,
    describe_family,
    export_module,
    list_facts,
    name_sizes,
    require_plain,
    require_plain_state,
    write_text,
)
from harness.capture.runtime import fits, replace_forward
from harness.capture.script import ModelFinder, run_script
from harness.capture.trial_calls import (
    behaves_equally,
    compare_times,
    copy_module,
    draw_tensors,
    find_constant,
    require_equal,
    run,
)
from harness.capture.watch import CallForm, Watch
from harness.domain import ProblemError, StoreError, UsageError
from harness.domain.files import raising, read_json_record, replace_text
from harness.evaluation.case_validation import admit_cases
from harness.evaluation.timing.roofline import PeakStore
from harness.problems.discovery import read_problem
from harness.sandbox.devices import Device, open_device
from harness.tensors.values import list_tensors

MAX_OPERATORS = 48  # of one problem
NEAR_PEAK = 0.9
BACKWARD = "BACKWARD = True"
UNTRAINED = "{} hardly depends on its inputs, as often without trained weights: load them, or initialise the model"
ADVICE = dict.fromkeys(("zeros", "constant", "stale buffer"), UNTRAINED) | {
    "99 % partial": "the last elements of {} do not depend on its inputs",
    "inputs follow the seed": "its inputs have the same values in all calls",
}
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
    outlines: dict[str, Any] = field(default_factory=dict)
    written: dict[str, ProblemText] = field(default_factory=dict)

    def make_record(self) -> dict[str, Any]:
        names = ("model", "name", "device", "hardware", "calls", "wall_us", "device_us", "outlines")
        groups = [_record_group(group, self.written.get(group.problem)) for group in self.groups]
        return {name: getattr(self, name) for name in names} | {"groups": groups}


def watch_script(script: Path, arguments: Sequence[str], model: str, calls: int) -> tuple[Watch, dict[str, Any]]:
    """Return what was seen, and the modules with chains, by path. Raises ScriptFailed and UsageError."""
    watch = Watch(max_calls=calls)
    outlines: dict[str, Any] = {}
    watch.described = lambda: _split_modules(watch, outlines)
    finder = ModelFinder(model, watch.attach)
    with finder.watching():
        run_script(script, arguments)
    finder.require()
    if not watch.modules[""].forms:
        raise UsageError(f"each of the {watch.calls} calls of {model} raised an exception, which the script caught")
    if not watch.timed:
        (args, kwargs), gradients = watch.last, any(f.has_gradients for f in watch.modules[""].forms.values())
        module, watch.max_calls = watch.modules[""].module, REPEATED_CALLS + 1
        with nullcontext() if gradients else torch.no_grad():
            while watch.calls < REPEATED_CALLS:
                module(*args, **kwargs)
    watch.detach()
    for path in outlines:
        vars(watch.modules[path].module).pop("forward")
    return watch, outlines


def _split_modules(watch: Watch, outlines: dict[str, Any]) -> bool:
    """Make modules of the chains of operators that modules have in their forward. Return whether there are any."""
    for path, record in list(watch.modules.items()):
        if not record.forms or type(record.module).__module__.startswith("torch.nn."):
            continue
        form = next(iter(record.forms.values()))
        try:
            outline, chains = outline_module(record.module, form)
        except ProblemError as error:
            record.opaque = str(error)
            continue
        for name, chain in outline.chains.items():
            watch.add(f"{path}.{name}".lstrip("."), chain)
        if chains:
            outlines[path] = {"arguments": describe_arguments(form), "chains": chains}
            replace_forward(outline, on=True)
    return bool(outlines)


def capture(
    script: Path, arguments: Sequence[str], model: str, folder: Path, *, options: CaptureOptions, cache: Path | None
) -> CaptureReport:
    """Write problems to `folder`. Raises ScriptFailed, UsageError and StoreError."""
    watch, outlines = watch_script(script, arguments, model, options.calls)
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
        outlines=outlines,
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
        group.reason = f"beyond the {options.max_problems} problems asked for (--max-problems)"
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
    named = bool(options.modules)
    if not named and group.gain_limit < options.min_gain:
        group.reason = f"it cannot speed up the model by {options.min_gain}x (--min-gain)"
        return predict_gain(group.share, float("inf")) < options.min_gain
    name = _make_name(group.kind, set(report.written))
    settings = _list_settings(group, options)
    count = f"{len(group.paths)} of its modules, from" if len(group.paths) > 1 else "its"
    place = f", {count} {group.paths[0]}" if group.paths[0] else ""
    summary = f"{group.kind} of {report.model}{place}: {group.share:.0%} of a call's time."
    try:
        if type(group.module) is nn.Sequential and any(map(list, map(nn.Module.children, group.module))) and not named:
            raise ProblemError("it is a sequence of blocks")  # which occur more often
        text = make_problem(group.module, group.forms, summary=summary, settings=settings, device=watch.device)
        if text.operators > MAX_OPERATORS and not named:
            raise ProblemError(f"it consists of {text.operators} operators: too many for one problem")
        _store_problem(report.folder / f"{name}.py", text.text, watch.device)
    except ProblemError as error:
        group.reason = str(error)
        return False
    if not options.backward and any(form.has_gradients for form in group.forms):
        text.left_out.append("for calls without gradients alone, which the script computes: --backward includes them")
    equal = [group.paths[0]]
    for path in group.paths[1:]:
        if behaves_equally(group.module, watch.modules[path].module, text.forms[0], watch.device):
            equal.append(path)
    if len(equal) < len(group.paths):
        left = len(group.paths) - len(equal)
        text.left_out.append(f"{left} of {len(group.paths)} modules of this class and shape compute something else")
        group.share *= len(equal) / len(group.paths)
        group.paths = equal
    with suppress(torch.OutOfMemoryError):  # copies of both and their inputs; then it is not known
        group.slowdown = compare_times(group.module, text, watch.device)
    if group.slowdown > 1.0:
        text.left_out.append(
            f"its baseline takes {group.slowdown:.2f}x the module's time, since torch calls a faster implementation of "
            "the module: a kernel gains as much less in the model"
        )
    group.problem, group.left_out = name, text.left_out
    report.written[name] = text
    return True


def _make_name(kind: str, taken: set[str]) -> str:
    words = re.sub(r"(?<=[a-z])G?LU|(?<=\d)D", lambda found: found[0].lower(), kind)  # ReLU, SwiGLU, Conv2D
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", words).lower()
    return name if name not in taken else next(f"{name}_{at}" for at in count(2) if f"{name}_{at}" not in taken)


def _list_settings(group: ModuleGroup, options: CaptureOptions) -> list[str]:
    settings = ['TAGS = ("captured",)']
    if options.backward and any(form.has_gradients for form in group.forms):
        settings.append(BACKWARD)
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
        name, evidence = failed[0].name, re.sub(r"accepted; [^;]*; ", "", failed[0].evidence)
        advice = ADVICE[name].format(evidence.partition(":")[0]) if name in ADVICE else f"{name}: {evidence}"
        raise ProblemError(f"it cannot be scored: {advice}")


def _replace(path: Path, text: str) -> None:
    """Raises StoreError."""
    with raising(StoreError, f"write {path}", "; choose another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)


def read_capture(folder: Path) -> dict[str, Any]:
    """Raises UsageError and StoreError."""
    path = folder / RECORD
    record = read_json_record(path, "capture the model again")
    if record is None:
        raise UsageError(f"no {path}: make it with harness capture")
    return record


def _record_group(group: ModuleGroup, text: ProblemText | None) -> dict[str, Any]:
    record = {one.name: getattr(group, one.name) for one in fields(group) if one.name not in ("module", "forms")}
    record |= {"peak_fraction": group.peak_fraction, "gain_limit": group.gain_limit}
    if text is not None:
        record |= {name: getattr(text, name) for name in ("inputs", "outputs", "frozen", "shapes")}
        record["arguments"] = describe_arguments(text.forms[0])
    return record


def make_problem(
    module: nn.Module, forms: Sequence[CallForm], *, summary: str, settings: Sequence[str], device: torch.device
) -> ProblemText:
    """Raises ProblemError with the reason why the module cannot be a problem."""
    require_plain_state(module)
    module = copy_module(module, device)
    text = _write_and_check(module, _choose_family(forms), summary, settings, device)
    covered = sum(form.count for form in text.forms if _is_covered(form, text))
    total = sum(form.count for form in forms)
    if covered < total:
        text.left_out.append(f"{total - covered} of {total} calls have other shapes or arguments")
    return text


def _is_covered(form: CallForm, text: ProblemText) -> bool:
    shapes = [facts.shape for _, facts in list_facts(form.arguments)]
    return any(fits(shapes, known) for known in text.shapes)


def _choose_family(forms: Sequence[CallForm]) -> list[CallForm]:
    """Return the most frequent calls of equal form, the most frequent one first, without those on empty tensors.
    Raises ProblemError."""
    families: dict[str, list[CallForm]] = defaultdict(list)
    for form in [one for one in forms if all(0 not in facts.shape for _, facts in list_facts(one.arguments))] or forms:
        families[describe_family(form)].append(form)
    family = max(families.values(), key=lambda members: sum(one.count for one in members))
    require_plain(family[0])
    return sorted(family, key=lambda one: -one.count)


def _write_and_check(
    module: nn.Module, forms: list[CallForm], summary: str, settings: Sequence[str], device: torch.device
) -> ProblemText:
    """Cover all sizes with one graph if torch.export can, else only the most frequent ones."""
    nonnegative = list(_find_nonnegative(module, forms[0], device))
    constant = find_constant(module, forms[0], device) if BACKWARD in settings else None
    failures: list[ProblemError] = []
    for tried, plain in product((forms, forms[:1]) if len(forms) > 1 else (forms,), (False, True)):
        sizes = name_sizes(tried)
        largest = max(tried, key=lambda form: sum(math.prod(facts.shape) for _, facts in list_facts(form.arguments)))
        try:
            given = draw_tensors(largest, device).values()
            exported = export_module(copy.deepcopy(module), largest, given, sizes)
            write = partial(
                write_text, module, exported, tried, summary=summary, settings=settings, nonnegative=nonnegative,
                plain=plain, constant=constant,
            )  # fmt: skip
            text = write(sizes=sizes)
            for values in sizes.values:
                require_equal(module, text, values, device, gradients=constant is not None)
            with suppress(ProblemError):  # of sizes that depend on each other
                for values in sizes.list_mixed():
                    require_equal(module, text, values, device, gradients=False)
                text = write(sizes=replace(sizes, ranges=sizes.find_ranges()))
            return text
        except ProblemError as error:
            failures.append(error)
    raise failures[-1]


def _find_nonnegative(module: nn.Module, form: CallForm, device: torch.device) -> Iterator[str]:
    """Yield inputs without negative values for which the module is undefined there (logarithms, roots)."""
    tensors = draw_tensors(form, device)
    for name, facts in list_facts(form.arguments):
        if facts.pattern == "uniform":
            try:
                results = run(module, form, tensors | {name: -tensors[name] - 1e-3})
            except Exception:  # noqa: BLE001  # of the user's code, which refuses them
                yield name
                continue
            if any(bool(one.isnan().any()) for one in list_tensors(results) if one.is_floating_point()):
                yield name
