"""Renders captured models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.report.terminal.tables import make_table, style_text
from harness.report.values import format_fixed, format_rate

if TYPE_CHECKING:
    from rich.table import Table

_NUMBERS = ("calls", "time", "us", "of peak", "at most")
LISTED_SHARE = 0.005  # modules with less time are left out


def render_capture(record: Mapping[str, Any]) -> Table:
    table = make_table()
    table.add_column("module", min_width=20, overflow="fold")
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    table.add_column("problem", no_wrap=True)
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
        table.add_row(style_text(group["kind"]), *numbers, group["bound"], "yes" if group["problem"] else "-")
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
        for left_out in group["left_out"]:
            yield f"{group['problem']}: {left_out}"
    written = [group["problem"] for group in record["groups"] if group["problem"]]
    yield f"{folder / name} and {len(written)} problems: {', '.join(written) or 'none'}"
