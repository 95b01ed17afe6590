"""Renders captured models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.report.terminal.tables import make_table, style_text
from harness.report.values import format_fixed, format_rate

if TYPE_CHECKING:
    from rich.table import Table

LEAST_WIDTH = 16  # of a column
CHAIN_SHARE = 0.03  # of operators in the forward of a module with others inside
LISTED_SHARE = 0.005  # modules with less time are left out


def render_capture(record: Mapping[str, Any]) -> Table:
    table = make_table(
        "module", ">calls", ">time", ">us", ">of peak", ">at most", "=bound by", "problem", least=LEAST_WIDTH
    )
    for group in record["groups"]:
        if group["share"] < LISTED_SHARE:
            continue
        numbers = (
            format_fixed(group["calls"], 0),
            format_rate(group["share"]),
            format_fixed(group["time_us"], 0 if group["time_us"] >= 100 else 1),
            format_rate(group["peak_fraction"], 0),
            f"{format_fixed(group['gain_limit'], 2)}x",
        )
        table.add_row(style_text(group["kind"]), *numbers, group["bound"], group["problem"] or "-")
    return table


def list_capture_notes(record: Mapping[str, Any], folder: Path, name: str) -> Iterator[str]:
    """Yield lines below the table."""
    yield (
        f"{record['model']} on {record['hardware']}: {format_fixed(record['wall_us'] / 1e3, 2)} ms a call, mean of "
        f"{record['calls']}"
    )
    if record["device"] != "cpu":
        yield f"the GPU works {format_rate(record['device_us'] / record['wall_us'])} of that time; shares are of it"
    for group in record["groups"]:
        if group["reason"] and group["share"] >= LISTED_SHARE:
            yield f"no problem for {group['kind']}: {group['reason']}"
        if group["reason"] and CHAIN_SHARE <= group["own_share"] < group["share"]:
            share = format_rate(group["own_share"])
            why = group["opaque"] or "they are products, or single operators"
            yield f"{share} of the time is in operators of {group['kind']}.forward itself, no chains: {why}"
        for left_out in group["left_out"]:
            yield f"{group['problem']}: {left_out}"
    written = [group["problem"] for group in record["groups"] if group["problem"]]
    yield f"{folder / name} and {len(written)} problems: {', '.join(written) or 'none'}"


def render_apply(record: Mapping[str, Any]) -> Table:
    table = make_table("kernel", ">id", ">alone", ">predicted", ">in the model", "result", least=LEAST_WIDTH)
    for one in record["kernels"]:
        numbers = ("-" if one[name] is None else f"{format_fixed(one[name], 3)}x" for name in ("alone", "predicted"))
        result = one["reason"] or "applied"
        table.add_row(style_text(one["problem"]), str(one["evaluation"]), *numbers, _gain(one["in_model"]), result)
    return table


def _gain(gain: Mapping[str, float] | None) -> str:
    if gain is None:
        return "-"
    low, high = (format_fixed(gain[name], 3) for name in ("low", "high"))
    return f"{format_fixed(gain['gain'], 3)}x [{low}, {high}]"


def list_apply_notes(record: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield lines below the table."""
    if record["missing"]:
        yield f"no correct kernel on this kind of device: {', '.join(record['missing'])}"
    for mode, gain in record["modes"].items():
        if isinstance(gain, str):
            yield f"{record['model']}, {mode}: not measured: {gain}"
            continue
        times = " -> ".join(format_fixed(gain[name] / 1e3, 3) for name in ("before_us", "after_us"))
        yield f"{record['model']}, {mode}: {_gain(gain)}, {times} ms a call"
    if record["modes"]:
        yield f"predicted from the shares: {format_fixed(record['predicted'], 3)}x"
    if record["tokens"] is not None:
        yield f"greedy tokens: the first {record['tokens']} of {record['asked_tokens']} are equal"
    if record["losses"]:
        worst = max(abs(ours - theirs) for theirs, ours in record["losses"])
        yield f"losses of {len(record['losses'])} steps: off by {worst:.3g} at most"
    if any(not one["reason"] for one in record["kernels"]):
        yield f"{folder / 'applied'}: import it and call apply(model); it does not need harness"
