"""Puts the best verified kernels of a captured suite into the model, verifies and measures the whole model.

A kernel that fails there, or does not make it faster, is left out.
"""

from __future__ import annotations

import copy
import json
import pprint
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.builder.torch_ninja import ninja_on_path
from harness.capture import comparison, runtime
from harness.capture.capture import read_capture
from harness.capture.groups import predict_gain
from harness.capture.runtime import Dispatch, Plan, make_dispatches
from harness.capture.script import ModelFinder, run_script, unwrap
from harness.domain import Outcome, Problem, StoreError, UsageError
from harness.domain.files import raising, replace_text
from harness.problems.discovery import find_suite
from harness.problems.inputs.tensors import perturb
from harness.store.queries import ResultFilter
from harness.store.results import ResultStore
from harness.tensors.values import list_tensors, map_tensors

APPLIED = "applied"
KEPT_CALLS = 4  # of the script, with the arguments that it gives
STEPS = 12  # of a script that trains
TOKENS = 32
NEVER_CALLED = "never called: no call of the model has the shapes and constants that were captured"
NO_GAIN, SLOWER = "no gain beyond the noise", "slower in the model"
NEVER_TRAINED = "verified without gradients, which the script computes: capture it with --backward"


@dataclass(slots=True, kw_only=True)
class AppliedKernel:
    """`alone` is the speedup of its evaluation, `predicted` what it means for the model, `in_model` the measured one.
    `reason` says why it was left out."""

    problem: str
    evaluation: int
    alone: float | None
    predicted: float | None
    plan: Plan
    source: str
    in_model: comparison.Gain | None = None
    reason: str = ""
    dispatches: list[Dispatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ApplyReport:
    """`modes` maps eager, compile and graph to gains or reasons; `tokens` of `asked_tokens` greedy tokens are equal."""

    model: str
    kernels: list[AppliedKernel]
    modes: dict[str, comparison.Gain | str] = field(default_factory=dict)
    predicted: float = 1.0
    tokens: int | None = None
    asked_tokens: int = TOKENS
    losses: list[tuple[float, float]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def kept(self) -> list[AppliedKernel]:
        return [one for one in self.kernels if not one.reason]

    def make_record(self) -> dict[str, Any]:
        shown = ("problem", "evaluation", "alone", "predicted", "reason")
        kernels = [
            {name: getattr(one, name) for name in shown} | {"in_model": one.in_model and asdict(one.in_model)}
            for one in self.kernels
        ]
        modes = {name: one if isinstance(one, str) else asdict(one) for name, one in self.modes.items()}
        names = ("model", "predicted", "tokens", "asked_tokens", "losses", "missing")
        return {name: getattr(self, name) for name in names} | {"kernels": kernels, "modes": modes}


def find_kernels(folder: Path, results_dir: Path) -> tuple[list[AppliedKernel], list[str]]:
    """Return the fastest correct kernel of each problem on this kind of device, and the problems without one. Raises
    UsageError."""
    record = read_capture(folder)
    groups = {group["problem"]: group for group in record["groups"] if group["problem"]}
    if not all(isinstance(group.get("arguments"), str) for group in groups.values()):
        raise UsageError(f"{folder} was captured by another version: capture the model again")
    kernels, missing = [], []
    with ResultStore.open(results_dir, read_only=True) as store:
        for problem in find_suite(folder):
            group = groups.get(problem.name)
            best = None if group is None else _find_best(store, problem, record["device"])
            if group is None or best is None:
                missing.append(problem.name)
                continue
            plan = {
                name: group[name] for name in ("problem", "paths", "inputs", "outputs", "arguments", "shapes", "frozen")
            }
            owners = {
                path.rpartition(".")[0] for path in group["paths"] if path.rpartition(".")[2].startswith("chain_")
            }
            outlines = {path: one for path, one in record["outlines"].items() if path in owners}
            source = store.source(best.evaluation.subject.candidate_digest) or ""
            alone = best.evaluation.speedup
            kernels.append(
                AppliedKernel(
                    problem=problem.name,
                    evaluation=best.id,
                    alone=alone,
                    predicted=predict_gain(group["share"], alone / group.get("slowdown", 1.0)) if alone else None,
                    plan=plan | {"backward": problem.backward, "outlines": outlines},
                    source=source,
                )
            )
    return kernels, missing


def _find_best(store: ResultStore, problem: Problem, device: str) -> Any:
    """Return the fastest one that was verified as the problem's file is written."""
    where = ResultFilter(problem=problem.name, outcome=Outcome.CORRECT, workload="full")
    found = []
    for one in store.load_all(where):
        subject = one.evaluation.subject
        is_near = subject.device.partition(":")[0] == device.partition(":")[0]
        if is_near and subject.problem_digest == problem.digest and not subject.dtype:
            found.append(one)
    return max(found, key=lambda one: (one.evaluation.speedup or 0.0, one.id), default=None)


def apply_script(
    folder: Path,
    script: Path,
    arguments: Sequence[str],
    *,
    results_dir: Path,
    modes: Sequence[str] = comparison.MODES[:1],
) -> ApplyReport:
    """Run the script for the model and arguments, compare, measure, and write the applied kernels to the folder."""
    name = read_capture(folder)["name"]
    run = partial(_run_watched, script, arguments, name)
    model, calls, losses = run(KEPT_CALLS)
    report = apply_kernels(model, folder, calls, results_dir=results_dir, modes=modes, gradients=bool(losses))
    if losses and report.kept:
        _compare_losses(run, folder, report)
        runtime.enable([one for kernel in report.kernels for one in kernel.dispatches if kernel.reason], on=False)
    write_applied(folder, report)
    return report


def _run_watched(
    script: Path, arguments: Sequence[str], name: str, steps: int, put: Callable[[nn.Module], object] | None = None
) -> tuple[nn.Module, comparison.Calls, list[float]]:
    """Return the model, its first calls, and the losses whose gradients the script computes in `steps` calls."""
    calls: list[comparison.Call] = []
    seen = 0

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        nonlocal seen
        if seen >= steps:
            raise SystemExit
        seen += 1
        if len(calls) < KEPT_CALLS:
            calls.append(copy.deepcopy((_detach(args), _detach(kwargs))))

    def found(model: nn.Module) -> None:
        if put is not None:
            put(model)
        handles.append(model.register_forward_pre_hook(before, with_kwargs=True))

    handles: list[Any] = []
    finder = ModelFinder(name, found)
    with finder.watching(), record_losses() as losses:
        run_script(script, arguments)
    for handle in handles:
        handle.remove()
    return finder.require(), calls, losses


def _detach(value: Any) -> Any:
    return map_tensors(value, torch.Tensor.detach)


@contextmanager
def record_losses() -> Iterator[list[float]]:
    losses: list[float] = []
    usual = torch.autograd.backward

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        losses.extend(float(one.detach()) for one in list_tensors(tensors) if one.numel() == 1)
        return usual(tensors, *args, **kwargs)

    torch.autograd.backward = backward
    try:
        yield losses
    finally:
        torch.autograd.backward = usual


def _compare_losses(run: Callable[..., Any], folder: Path, report: ApplyReport) -> None:
    """Train three times under one seed: as it is, with weights moved by one rounding, and with the kernels."""
    plans, seed = [one.plan for one in report.kept], secrets.randbits(32)

    def put(model: nn.Module) -> None:
        runtime.apply_plans(model, plans, folder / APPLIED)

    def move(model: nn.Module) -> None:
        perturb([value.data for value in model.parameters()], 0)

    found = []
    for change in (None, move, put):
        torch.manual_seed(seed)
        found.append(run(STEPS, change)[2])
    report.losses = list(zip(found[0], found[2], strict=False))
    allowed = comparison.allow_losses(*found[:2])
    off = max(abs(ours - theirs) for theirs, ours in report.losses)
    if not off <= allowed:
        report.modes.clear()
        for kernel in report.kept:
            kernel.reason = f"losses of {len(report.losses)} steps: off by {off:.3g}, allowed {allowed:.3g}"


def apply_kernels(
    model: nn.Module, folder: Path, calls: comparison.Calls, *, results_dir: Path,
    modes: Sequence[str] = comparison.MODES[:1], gradients: bool = False,
) -> ApplyReport:  # fmt: skip
    """Leave the kernels that pay in the model. With `gradients` a call consists of forward and backward pass."""
    model = unwrap(model)
    kernels, missing = find_kernels(folder, results_dir)
    report = ApplyReport(model=type(model).__name__, kernels=kernels, missing=missing)
    expected = comparison.expect(model, calls, gradients=gradients)
    write_kernels(folder, kernels)
    for kernel in kernels:
        _try_kernel(kernel, folder, expected)
    _combine(report, expected, modes)
    runtime.enable([one for kernel in report.kept for one in kernel.dispatches])
    return report


def _try_kernel(kernel: AppliedKernel, folder: Path, expected: comparison.Expected) -> None:
    """Compare the kernel with its modules on the model's own data, then measure the model with it alone."""
    try:
        with ninja_on_path():
            kernel.dispatches = make_dispatches(expected.model, kernel.plan, folder / APPLIED / f"{kernel.problem}.py")
    except Exception as error:  # noqa: BLE001  # of the kernel's constructor
        kernel.reason = f"it cannot replace the module: {type(error).__name__}: {error}"
        return
    for one in kernel.dispatches:
        one.check = comparison.describe_difference
    with comparison.applied(kernel.dispatches):
        comparison.run_calls(expected.model, expected.calls, gradients=expected.gradients)
    for one in kernel.dispatches:
        one.check = None
    failures = [text for one in kernel.dispatches for text in one.failures]
    if failures:
        kernel.reason = f"wrong in the model: {failures[0]}"
    elif not any(one.used for one in kernel.dispatches):
        kernel.reason = NEVER_TRAINED if expected.gradients and not kernel.plan["backward"] else NEVER_CALLED
    else:
        found = comparison.measure_mode("eager", kernel.dispatches, expected)
        if isinstance(found, str):
            kernel.reason = found
        else:
            kernel.in_model = found
            kernel.reason = "" if found.pays else NO_GAIN if found.high >= 1.0 else SLOWER


def _combine(report: ApplyReport, expected: comparison.Expected, modes: Sequence[str]) -> None:
    dispatches = [one for kernel in report.kept for one in kernel.dispatches]
    if not dispatches:
        return
    difference = comparison.compare_models(dispatches, expected)
    if difference:
        for kernel in report.kept:
            kernel.reason = f"wrong together with the others: {difference}"
        return
    saved = sum(1 - 1 / one.predicted for one in report.kept if one.predicted)
    report.predicted = 1 / max(1 - saved, 1e-9)
    report.tokens = comparison.compare_tokens(expected, dispatches, report.asked_tokens)
    report.modes = comparison.measure_modes(dispatches, expected, modes)


def write_kernels(folder: Path, kernels: Sequence[AppliedKernel]) -> None:
    """Raises StoreError."""
    with raising(StoreError, f"write {folder / APPLIED}"):
        shutil.rmtree(folder / APPLIED, ignore_errors=True)
        for kernel in kernels:
            replace_text(folder / APPLIED / f"{kernel.problem}.py", kernel.source)


def write_applied(folder: Path, report: ApplyReport) -> None:
    """Write a package that applies the kernels without harness, and the record of the comparison."""
    plans = pprint.pformat([dict(one.plan) for one in report.kept], width=110, sort_dicts=False)
    text = f"{Path(runtime.__file__).read_text(encoding='utf-8')}\n\nPLANS: list[dict[str, Any]] = {plans}\n\n\n{APPLY}"
    write_kernels(folder, report.kept)
    replace_text(folder / APPLIED / "__init__.py", text)
    replace_text(folder / "applied.json", json.dumps(report.make_record(), indent=1))


APPLY = '''def apply(model: nn.Module) -> nn.Module:
    """Put the kernels into the model, in place."""
    return apply_plans(model, PLANS, Path(__file__).parent)
'''
